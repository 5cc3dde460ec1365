package namedmodel

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Conversion is a folder as the GGUF file that it becomes.
type Conversion struct {
	*convert.Model
	folder   *checkpoint.Folder
	FileType *ftype.Type
	tensors  []gguf.Tensor // as Model.Tensors, with types
}

// PlanFolder plans the conversion of a folder; without a recipe its matrices keep their type. It checks that the
// tensors are those of the architecture, before anything is written.
func PlanFolder(folder *checkpoint.Folder, recipe *ftype.Type, o convert.Options) (*Conversion, error) {
	f, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	return planFolder(folder, f, recipe, o)
}

// planFolder is PlanFolder with the folder's texts.
func planFolder(folder *checkpoint.Folder, f *convert.Folder, recipe *ftype.Type, o convert.Options) (
	*Conversion, error) {
	m, err := convert.Plan(f, o)
	if err != nil {
		return nil, err
	}
	c := &Conversion{Model: m, folder: folder, FileType: cmp.Or(recipe, ownType(m.Tensors))}
	types, err := c.types(recipe == nil)
	if err != nil {
		return nil, err
	}
	stamp := c.FileType.FileType
	for i, t := range m.Tensors {
		c.tensors = append(c.tensors, gguf.Tensor{Name: t.Name, Type: types[i], Shape: t.Shape})
		if blocks, _ := ftype.Find("MXFP4_MOE"); types[i] == quant.MXFP4 && c.FileType.Base.Block() == 1 {
			stamp = blocks.FileType
		}
	}
	m.Meta.Set("general.file_type", stamp)
	return c, c.check()
}

// readFolder reads the texts of a folder and lists its tensors.
func readFolder(folder *checkpoint.Folder) (*convert.Folder, error) {
	path, _ := filepath.Abs(folder.Path) // on failure the name stays empty
	f := &convert.Folder{Name: strings.TrimSuffix(filepath.Base(path), ".cgml"), Texts: map[string][]byte{}}
	for _, name := range convert.Files() {
		text, err := folder.Text(name)
		if err != nil {
			return nil, err
		}
		if text != nil {
			f.Texts[name] = text
		}
	}
	f.Tensors = make([]element.Tensor, len(folder.Tensors))
	for i := range folder.Tensors {
		f.Tensors[i] = folder.Tensors[i].Tensor
	}
	return f, nil
}

// ownType is the file type that most values in the folder have.
func ownType(tensors []convert.Tensor) *ftype.Type {
	counts := map[quant.Type]int64{}
	for i := range tensors {
		if t := &tensors[i]; !t.Vector && t.Scales == nil {
			counts[t.Own()] += values(t.Shape)
		}
	}
	name := "F32"
	for _, t := range []quant.Type{quant.F16, quant.BF16} {
		if counts[t] > counts[quant.F32] && counts[t] >= counts[quant.F16] {
			name = t.String()
		}
	}
	if counts[quant.Q4_1] > counts[quant.F32]+counts[quant.F16]+counts[quant.BF16] { // of a package
		name = quant.Q4_1.String()
	}
	own, _ := ftype.Find(name)
	return own
}

// types chooses each tensor's type: its own, or that of the recipe.
func (c *Conversion) types(own bool) ([]quant.Type, error) {
	before := make([]ftype.Tensor, len(c.Tensors))
	for i := range c.Tensors {
		t := &c.Tensors[i]
		before[i] = ftype.Tensor{Name: t.Name, Type: t.Own(), Shape: t.Shape}
	}
	types, err := c.FileType.Types(c.Meta, before, ftype.Options{})
	if err != nil {
		return nil, err
	}
	for i := range types {
		t := &c.Tensors[i]
		switch {
		case t.Vector:
			types[i] = quant.F32
		case t.Scales != nil:
			types[i] = quant.MXFP4
		case t.Change == convert.PlusIndex: // no weights
			types[i] = t.Own()
		case c.FileType.Base.Block() == 1: // plain numbers: no rule has a say
			types[i] = c.FileType.Base
		}
		if own && !t.Vector {
			types[i] = t.Own()
		}
	}
	return types, nil
}

// check checks whether the new file can be run, by its metadata, tensors and vocabulary.
func (c *Conversion) check() error {
	if name, _ := c.Meta.String("general.architecture"); arch.Guesses(name) {
		return nil // what it has not is its target's: they are checked together
	}
	list := make([]ir.Tensor, len(c.tensors))
	has := map[string]bool{}
	for i, t := range c.tensors {
		list[i] = ir.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}
		has[t.Name] = true
	}
	program, err := arch.Record(c.Meta, func(name string) bool { return has[name] }, arch.Options{})
	if err != nil {
		return err
	}
	ear, err := arch.RecordEar(c.Meta, func(name string) bool { return has[name] })
	if err != nil {
		return err
	}
	if _, err := ir.Bind(program, list); err != nil {
		return err
	}
	if ear != nil {
		if _, err := ir.Bind(ear.Program, list); err != nil {
			return err
		}
	}
	_, err = token.New(c.Meta)
	return err
}

// Parameters counts the values of all tensors.
func (c *Conversion) Parameters() (n int64) {
	for _, t := range c.tensors {
		n += values(t.Shape)
	}
	return n
}

// Bytes is the size of all tensors in the file.
func (c *Conversion) Bytes() (n int64) {
	for _, t := range c.tensors {
		if row, err := t.Type.RowBytes(t.Shape[0]); err == nil {
			n += values(t.Shape) / int64(t.Shape[0]) * int64(row)
		}
	}
	return n
}

// Write writes the file. Each tensor's bytes go through what through makes of the file's writer.
func (c *Conversion) Write(file io.Writer, through func(io.Writer) io.Writer) error {
	w := bufio.NewWriterSize(file, 1<<20)
	i := 0
	err := gguf.Write(w, c.Meta, c.tensors, func(t *gguf.Tensor, w io.Writer) error {
		from := &c.Tensors[i]
		i++
		buffered := bufio.NewWriterSize(through(w), 64<<10)
		return cmp.Or(from.Write(buffered, t.Type, c.folder.View), buffered.Flush())
	})
	return errors.Join(err, w.Flush())
}

// values counts the numbers in a tensor.
func values(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}
