package models

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// OpenTower opens the tower in the folder of a model that sees, as if it were the mmproj file that convert would write;
// nil: the folder has none. The caller closes it.
func OpenTower(path string) (*gguf.File, error) {
	folder, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := planTower(folder)
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

// planTower plans the conversion of the tower of a folder, whose tensors keep their types; nil: it has none.
func planTower(folder *checkpoint.Folder) (*converted, error) {
	f, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	m, err := convert.PlanVision(f, convert.Options{})
	if err != nil || m == nil {
		return nil, err
	}
	c := &converted{Model: m, folder: folder, FileType: ownType(m.Tensors)}
	for i := range m.Tensors {
		t := &m.Tensors[i]
		c.tensors = append(c.tensors, gguf.Tensor{Name: t.Name, Type: t.Own(), Shape: t.Shape})
	}
	m.Meta.Set("general.file_type", c.FileType.FileType)
	return c, nil
}
