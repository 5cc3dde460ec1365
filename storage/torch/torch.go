// Package torch reads the directories of PyTorch's own files (.bin, .pt, .pth): which tensors they hold, and where.
//
// Such a file is a zip archive of data and one pickle. A pickle is a program, which may call anything in Python. It
// is interpreted here, and may only describe tensors and dictionaries of them; any other name in it is an error.
// Files from before PyTorch 1.6, which are no archives, are not read.
package torch

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

const mostPickle = 64 << 20 // bytes; names and shapes of 100 000 tensors take a quarter of that

// Parse reads the directory of a file of size bytes, and lists its tensors in the order of their data. It fails if
// the file is damaged, or calls anything that makes no tensor.
func Parse(r io.ReaderAt, size int64) ([]element.Stored, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("is no file of PyTorch 1.6 or later (%w): save the model again, as safetensors", err)
	}
	a, err := open(archive)
	if err != nil {
		return nil, err
	}
	text, err := a.pickle()
	if err != nil {
		return nil, err
	}
	root, err := interpret(text)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	named, err := tensorsOf(root)
	if err != nil {
		return nil, err
	}
	var all []element.Stored
	for name, t := range named {
		s, err := a.place(name, t, size)
		if err != nil {
			return nil, fmt.Errorf("tensor %.80q: %w", name, err)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b element.Stored) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// archive is the zip file: one folder with data.pkl and data/0, data/1, …
type archive struct {
	prefix string
	files  map[string]*zip.File
}

func open(r *zip.Reader) (*archive, error) {
	a := &archive{files: make(map[string]*zip.File, len(r.File))}
	for _, f := range r.File {
		if a.files[f.Name] != nil {
			return nil, fmt.Errorf("holds %.80q twice: the file is damaged, download it again", f.Name)
		}
		a.files[f.Name] = f
		if path.Base(f.Name) == "data.pkl" {
			a.prefix = strings.TrimSuffix(f.Name, "data.pkl")
		}
	}
	if a.files[a.prefix+"data.pkl"] == nil {
		return nil, errors.New("holds no data.pkl: is it a file of PyTorch?")
	}
	if f := a.files[a.prefix+"byteorder"]; f != nil {
		order, err := read(f, 16)
		if err != nil {
			return nil, err
		}
		if string(order) != "little" {
			return nil, fmt.Errorf("byte order is %q, want little: save the model again on a usual machine", order)
		}
	}
	return a, nil
}

func (a *archive) pickle() ([]byte, error) { return read(a.files[a.prefix+"data.pkl"], mostPickle) }

// read returns the content of an uncompressed file of the archive, if it has at most most bytes.
func read(f *zip.File, most uint64) ([]byte, error) {
	if f.Method != zip.Store || f.UncompressedSize64 > most {
		return nil, fmt.Errorf("%s: is compressed, or larger than %d bytes: save the model again", f.Name, most)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, int64(most)))
}

// place returns the place of a tensor's bytes in the file.
func (a *archive) place(name string, t *tensor, size int64) (element.Stored, error) {
	s := element.Stored{Tensor: element.Tensor{Name: name, Type: t.storage.kind, Shape: t.shape}}
	n, err := s.Count()
	if err != nil {
		return s, err
	}
	if !t.contiguous() {
		return s, fmt.Errorf("shape %v has strides %v: want the elements in order, save the model again", t.shape, t.strides)
	}
	f := a.files[a.prefix+"data/"+t.storage.key]
	if f == nil || f.Method != zip.Store {
		return s, fmt.Errorf("its data, data/%.20s, is missing or compressed: is the download complete?", t.storage.key)
	}
	bytes := int64(s.Type.Size())
	s.Size = n * bytes
	has := int64(min(f.UncompressedSize64, uint64(size)))
	if t.offset < 0 || s.Size > has || t.offset > (has-s.Size)/bytes {
		return s, fmt.Errorf("needs %d elements from %d of data/%s, which has %d bytes: the file is damaged",
			n, t.offset, t.storage.key, has)
	}
	begin, err := f.DataOffset()
	if err != nil {
		return s, err
	}
	if s.Offset = begin + t.offset*bytes; s.Offset > size-s.Size {
		return s, errors.New("its data ends behind the file: is the download complete?")
	}
	return s, nil
}

// tensorsOf returns the tensors of a checkpoint by name: those in its dictionary, or in the one that it holds as
// state_dict, model, module, params_ema or params: the last two are Real-ESRGAN's.
func tensorsOf(root any) (map[string]*tensor, error) {
	d, ok := root.(*dict)
	if !ok {
		return nil, errors.New("holds no dictionary of tensors: save the model's state_dict")
	}
	for _, inside := range []string{"state_dict", "model", "module", "params_ema", "params"} {
		if inner, ok := d.at(inside).(*dict); ok {
			d = inner
			break
		}
	}
	named := map[string]*tensor{}
	for i, key := range d.keys {
		name, ok := key.(string)
		t, is := d.values[i].(*tensor)
		if ok && is {
			named[name] = t
		}
	}
	if len(named) == 0 {
		return nil, errors.New("holds no tensors by name: save the model's state_dict")
	}
	return named, nil
}
