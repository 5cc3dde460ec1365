// Package gguf reads and writes GGUF files, the model format of ggml: metadata, a tensor directory, tensor data.
//
// Open maps a file, and all parts of a split one; metadata is copied out and the directory is checked against the
// file at once, tensor data is touched only when it is viewed. A damaged or hostile file gives one error that says
// what to do. The meaning of keys and tensors is left to stages/model/arch and stages/token.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Versions 2 and 3, little-endian.
package gguf

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/storage/mapped"
)

// Tensor is an entry of the directory.
type Tensor struct {
	Name   string
	Type   quant.Type
	Shape  []int // 1 to 4 dimensions in ggml order: Shape[0] is the length of a row, in values
	Part   int   // which file of a split model
	Offset int64 // first byte of the data, from the start of that file
	Size   int64 // bytes
}

// File is an open model. It may be read by many goroutines; Close must wait for them.
type File struct {
	Name    string   // as given to Open or Parse
	Version int      // of the format; 0 if it was assembled from other files
	Meta    meta.Map // of the first part
	Tensors []Tensor // in file order, part by part

	parts  []part
	byName map[string]int // index into Tensors
	shares atomic.Int32   // Close has to be called so many times more
	lent   []*File        // files whose parts are among this one's: see Borrow

	filled  bool   // its bytes come while it is used; see OpenArriving
	content string // by which its sender knows it
}

// Share returns the file for another owner: it stays open until each has closed it.
func (f *File) Share() *File {
	f.shares.Add(1)
	return f
}

// part is one file of a model: a mapping, whose pages fault if the file is truncated, or plain memory.
type part struct {
	name    string
	path    string // empty for memory
	data    []byte
	mapping *mapped.File // nil for memory
	free    func([]byte) error
	copies  []source.Source
	coming  source.Arriving // brings the bytes of the file; nil: they are there
	lent    bool            // by another file, which closes it
}

// Tensor returns a tensor by name, and whether there is one.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// Parts returns the number of files that the model is split into.
func (f *File) Parts() int { return len(f.parts) }

// Part returns the place of part i's bytes, for readers that do not use the mapping.
func (f *File) Part(i int) source.Source {
	p := &f.parts[i]
	s := source.Source{Name: p.name, Path: p.path, Size: int64(len(p.data)), Copies: p.copies}
	if p.path == "" {
		s.Data = p.data
	}
	switch {
	case p.coming != nil:
		s.Remote = p.coming
	case p.mapping != nil:
		s.Info = p.mapping.Info
	}
	return s
}

// Check fails if a file has been truncated or written to since it was opened.
func (f *File) Check() error {
	for i := range f.parts {
		if m := f.parts[i].mapping; m != nil {
			if err := m.Check(); err != nil {
				return fmt.Errorf("%s: %w", f.parts[i].name, err)
			}
		}
	}
	return nil
}

// View calls use with the bytes of t, without copying them. They are valid until use returns and must not be
// written to. If the file was truncated after it was opened, touching them ends use with a fault, which View
// returns as an error. That protection holds for the calling goroutine only: work that use hands to another
// goroutine needs a View of its own there.
func (f *File) View(t *Tensor, use func(data []byte) error) error {
	p := &f.parts[t.Part]
	if p.data == nil {
		return fmt.Errorf("%s: tensor %s: the file is closed", p.name, quote(t.Name))
	}
	if err := f.Await(t); err != nil {
		return err
	}
	data := p.data[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
	if p.mapping == nil {
		return use(data)
	}
	err := p.mapping.Guard(func() error { return use(data) })
	if errors.Is(err, mapped.ErrShrunk) || errors.Is(err, mapped.ErrChanged) {
		return fmt.Errorf("%s: tensor %s: %w", p.name, quote(t.Name), err)
	}
	return err
}

// Bytes returns the bytes of t in the mapping, valid until Close and never to be written to. Unlike View it does not
// wait for them (see Await), and does not
// turn memory faults into errors: if the file was truncated after it was opened, touching the bytes faults, and the
// caller must handle that.
func (f *File) Bytes(t *Tensor) []byte {
	return f.parts[t.Part].data[t.Offset:][:t.Size:t.Size]
}

// Close unmaps the file, if no other owner has it. No View may be running, and nothing may touch Bytes.
func (f *File) Close() error {
	if f.shares.Load() > 0 && f.shares.Add(-1) >= 0 {
		return nil
	}
	var errs []error
	for i := range f.parts {
		p := &f.parts[i]
		if p.mapping != nil && !p.lent {
			errs = append(errs, p.mapping.Close())
		}
		if p.free != nil && !p.lent {
			errs = append(errs, p.free(p.data))
			p.free = nil
		}
		f.parts[i].data, f.parts[i].mapping = nil, nil
	}
	for _, other := range f.lent {
		errs = append(errs, other.Close())
	}
	f.lent = nil
	return errors.Join(errs...)
}

// quote formats a name from a file for an error: escaped, and shortened if it is long.
func quote(name string) string {
	const most = 80
	if len(name) > most {
		return fmt.Sprintf("%q...", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
