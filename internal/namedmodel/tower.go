package namedmodel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/hub"
)

// OpenTower opens the tower in the folder of a model that sees, as if it were the mmproj file that convert would write;
// nil: the folder has none. The caller closes it.
func OpenTower(path string) (*gguf.File, error) {
	folder, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := planTower(folder, nil, convert.Options{})
	if err != nil || m == nil {
		return nil, errors.Join(err, folder.Close())
	}
	area, err := m.makeInMemory(m.place())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), folder.Close())
	}
	var pieces []gguf.Piece
	for _, f := range folder.Files {
		pieces = append(pieces, gguf.Piece{Path: f.Path, Mapping: f.File})
	}
	return gguf.Assemble(path, m.Meta, append(pieces, gguf.Piece{Data: area, Free: mem.Free}), m.tensors)
}

// PlanTower plans the conversion of the tower of a folder to an mmproj file. Matrices have the type of a recipe of
// plain numbers; nil: their own.
func PlanTower(folder *checkpoint.Folder, recipe *ftype.Type, o convert.Options) (*Conversion, error) {
	if recipe != nil && recipe.Base.Block() != 1 {
		return nil, fmt.Errorf("a tower is kept in F32, F16 or BF16, not in %s", recipe.Name)
	}
	m, err := planTower(folder, recipe, o)
	if err == nil && m == nil {
		err = fmt.Errorf("there is no tower that is known in it: want one of a model that sees (%s)",
			strings.Join(vision.Kinds(), ", "))
	}
	return m, err
}

// planTower is PlanTower; nil: the folder has no tower.
func planTower(folder *checkpoint.Folder, recipe *ftype.Type, o convert.Options) (*Conversion, error) {
	f, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	m, err := convert.PlanVision(f, o)
	if err != nil || m == nil {
		return nil, err
	}
	c := &Conversion{Model: m, folder: folder, FileType: cmp.Or(recipe, ownType(m.Tensors))}
	for i := range m.Tensors {
		t := &m.Tensors[i]
		typ := t.Own()
		switch {
		case recipe == nil:
		case t.Vector:
			typ = quant.F32
		default:
			typ = recipe.Base
		}
		c.tensors = append(c.tensors, gguf.Tensor{Name: t.Name, Type: typ, Shape: t.Shape})
	}
	m.Meta.Set("general.file_type", c.FileType.FileType)
	return c, nil
}

// Projector returns the mmproj file that lies beside a model's file, in a folder with no other model: a pull leaves it
// there, and so do other programs. "": there is none.
func Projector(model string) string {
	if info, err := os.Stat(model); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	dir := filepath.Dir(model)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	found := hub.Projector(names)
	if found < 0 || len(hub.Variants(names)) != 1 {
		return ""
	}
	return filepath.Join(dir, names[found])
}
