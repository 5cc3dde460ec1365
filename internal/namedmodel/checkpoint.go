package namedmodel

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// OpenFolder opens the folder of a model as if it were the GGUF file that convert would write: tensors stay where
// they are if their bytes can be used there, and are made in memory if not. The caller closes it.
func OpenFolder(path string, o convert.Options) (*gguf.File, error) {
	return openFolder(path, path, o)
}

// OpenEncoder opens the text encoder of a model that makes pictures: a GGUF file, or a folder, whose tokenizer may be
// in another one; "": it is not.
func OpenEncoder(path, tokenizer string) (*gguf.File, error) {
	if tokenizer == "" {
		return OpenPath(path)
	}
	return openFolder(path, tokenizer, convert.Options{})
}

// openFolder is OpenFolder with the texts of another folder beside its own.
func openFolder(path, texts string, o convert.Options) (*gguf.File, error) {
	folder, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := readFolder(folder)
	if err == nil && texts != path {
		var beside *convert.Folder
		if beside, err = readFolder(&checkpoint.Folder{Path: texts}); err == nil {
			for name, text := range beside.Texts {
				f.Texts[name] = text
			}
		}
	}
	var m *Conversion
	if err == nil {
		m, err = planFolder(folder, f, nil, o)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), folder.Close())
	}
	rearranged := m.place()
	area, err := m.makeInMemory(rearranged)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), folder.Close())
	}
	var pieces []gguf.Piece
	for _, f := range folder.Files {
		pieces = append(pieces, gguf.Piece{Path: f.Path, Mapping: f.File})
	}
	pieces = append(pieces, gguf.Piece{Data: area, Free: mem.Free})
	return gguf.Assemble(path, m.Meta, pieces, m.tensors)
}

// place sets for each tensor the file and offset of its bytes, or an offset in memory, which is a part after all files.
// It returns how much memory that takes.
func (c *Conversion) place() int64 {
	const (
		wordBytes = 4  // what kernels read float32 by
		lineBytes = 32 // as GGUF files align
	)
	var end int64
	for i := range c.tensors {
		t := &c.tensors[i]
		name, offset, ok := c.Tensors[i].InPlace(t.Type)
		from, _ := c.folder.Find(name)
		if ok && (from.Offset+offset)%wordBytes == 0 {
			t.Part, t.Offset = from.File, from.Offset+offset
			continue
		}
		t.Part, t.Offset = len(c.folder.Files), end
		if row, err := t.Type.RowBytes(t.Shape[0]); err == nil { // planning has checked it
			end += values(t.Shape) / int64(t.Shape[0]) * int64(row)
		}
		end = (end + lineBytes - 1) / lineBytes * lineBytes
	}
	return end
}

// makeInMemory makes the tensors that place put in memory.
func (c *Conversion) makeInMemory(size int64) ([]byte, error) {
	if free := mem.Available(); size > free {
		return nil, fmt.Errorf("%s of its weights lie in another order than they are used in, and have to be in memory, of "+
			"which %s are free: sluice convert writes a file that can be streamed", mem.Text(size), mem.Text(free))
	}
	area, err := mem.Alloc(size)
	if err != nil {
		return nil, err
	}
	for i := range c.tensors {
		t := &c.tensors[i]
		if t.Part != len(c.folder.Files) {
			continue
		}
		w := bufio.NewWriterSize(&filler{area[t.Offset:]}, 64<<10)
		err := c.Tensors[i].Write(w, t.Type, c.folder.View)
		if err = errors.Join(err, w.Flush()); err != nil {
			return nil, errors.Join(fmt.Errorf("tensor %q: %w", t.Name, err), mem.Free(area))
		}
	}
	return area, nil
}

// filler is a writer to memory.
type filler struct{ rest []byte }

func (f *filler) Write(b []byte) (int, error) {
	n := copy(f.rest, b)
	f.rest = f.rest[n:]
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
