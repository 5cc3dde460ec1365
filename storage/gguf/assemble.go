package gguf

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/storage/mapped"
)

// Piece is the memory of an assembled model's tensors: a mapped file of any format, or allocated memory.
type Piece struct {
	Path    string
	Mapping *mapped.File // nil for memory

	Data []byte               // the bytes, if they are in allocated memory
	Free func(b []byte) error // gives Data back; may be nil
}

// Assemble makes a File of tensors that lie in memory, or in mapped files of another format whose bytes need no
// conversion. Part (an index into pieces) and Offset of each tensor say where its bytes are. The File owns the pieces;
// Assemble closes them if it fails.
func Assemble(name string, m *meta.Map, pieces []Piece, tensors []Tensor) (*File, error) {
	f := &File{Name: name, Meta: *m, byName: make(map[string]int, len(tensors))}
	for _, p := range pieces {
		one := part{name: name, path: p.Path, data: p.Data, mapping: p.Mapping, free: p.Free}
		if p.Mapping != nil {
			one.name, one.data = p.Path, p.Mapping.Data
		}
		f.parts = append(f.parts, one)
	}
	for _, t := range tensors {
		if err := f.place(t); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: tensor %s: %w", name, quote(t.Name), err), f.Close())
		}
	}
	return f, nil
}

// place adds a tensor of an assembled model, after checking that its bytes lie in its piece.
func (f *File) place(t Tensor) error {
	size, err := sizeOf(t.Type, t.Shape)
	switch {
	case err != nil:
		return err
	case t.Part < 0 || t.Part >= len(f.parts):
		return fmt.Errorf("is in part %d of %d", t.Part, len(f.parts))
	case t.Offset < 0 || size > int64(len(f.parts[t.Part].data))-t.Offset:
		return fmt.Errorf("needs %d bytes from %d on, and there are %d", size, t.Offset, len(f.parts[t.Part].data))
	}
	if _, twice := f.byName[t.Name]; twice {
		return errors.New("is listed twice")
	}
	t.Size = size
	f.byName[t.Name] = len(f.Tensors)
	f.Tensors = append(f.Tensors, t)
	return nil
}
