package gguf

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/mapped"
)

const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// Open maps the file at path, and the other parts if it is the first of a split model. Errors name the file, what is
// wrong in it and what to do.
func Open(path string) (*File, error) {
	f, err := open(path, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func open(path string, filled bool) (*File, error) {
	f := &File{Name: path, byName: make(map[string]int), filled: filled}
	first, err := f.addMapped(path)
	if err == nil {
		err = f.addSplits(path, first)
	}
	if err != nil {
		f.Close() // the first error is the one to report
		return nil, err
	}
	return f, nil
}

// Parse reads a file that is in memory already. The File keeps data, which must not change. name stands for the file
// in errors.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name, byName: make(map[string]int)}
	h, err := parse(data)
	if err == nil {
		err = f.add(part{name: name, data: data}, h)
	}
	count := int64(1)
	if err == nil {
		count, err = splitCount(h)
	}
	if err == nil && count > 1 {
		err = fmt.Errorf("key %q is %d: a split model cannot be read from memory, merge its parts into one file",
			keySplitCount, count)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *File) addMapped(path string) (*header, error) {
	m, err := mapped.Open(path)
	if errors.Is(err, safefile.ErrKind) {
		err = fmt.Errorf("%w: give the path of a .gguf file", err)
	}
	if err != nil {
		return nil, err
	}
	m.Filled = f.filled
	var h *header
	err = m.Guard(func() (err error) {
		h, err = parse(m.Data)
		return err
	})
	if err == nil {
		err = f.add(part{name: path, path: path, data: m.Data, mapping: m}, h)
	}
	if err != nil {
		m.Close() // the first error is the one to report
		return nil, err
	}
	return h, nil
}

// add appends a part and its tensors.
func (f *File) add(p part, h *header) error {
	for _, t := range h.tensors {
		if i, twice := f.byName[t.Name]; twice {
			return fmt.Errorf("tensor %s: is also in %s: these parts do not belong together, download the model again",
				quote(t.Name), f.parts[f.Tensors[i].Part].name)
		}
		t.Part = len(f.parts)
		f.byName[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	if len(f.parts) == 0 {
		f.Version, f.Meta = h.version, h.meta
	}
	f.parts = append(f.parts, p)
	return nil
}

// splitCount returns the number of files of the model. Most files do not state it, or state 0 if they are not split.
func splitCount(h *header) (int64, error) {
	if !h.meta.Has(keySplitCount) {
		return 1, nil
	}
	n, err := h.meta.Int(keySplitCount)
	if err == nil && (n < 0 || n > 99999) {
		err = fmt.Errorf("key %q is %d, want at most 99999: the file is damaged, download it again", keySplitCount, n)
	}
	return n, err
}

// splitName matches the file name of a part: prefix, number from 1, count.
var splitName = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})\.gguf$`)

// addSplits opens parts 2 to n of the model whose first part has been added.
func (f *File) addSplits(path string, first *header) error {
	count, err := splitCount(first)
	if err != nil || count <= 1 {
		return err
	}
	dir, base := filepath.Split(path)
	names := splitName.FindStringSubmatch(base)
	if names == nil || names[3] != fmt.Sprintf("%05d", count) {
		return fmt.Errorf("is one of %d parts, so its name must end in -00001-of-%05d.gguf for the others to be found: "+
			"give the parts their original names", count, count)
	}
	partPath := func(i int64) string { return fmt.Sprintf("%s%s-%05d-of-%05d.gguf", dir, names[1], i+1, count) }
	no, err := first.meta.Int(keySplitNo)
	if err != nil {
		return err
	}
	if no != 0 || names[2] != "00001" {
		return fmt.Errorf("is part %s of %d, want the first: open %s", strconv.Quote(names[2]), count, partPath(0))
	}
	for i := int64(1); i < count; i++ {
		if err := f.addPart(partPath(i), i, count); err != nil {
			return fmt.Errorf("part %d of %d: %w", i+1, count, err)
		}
	}
	want, err := first.meta.Int(keySplitTensors)
	if err == nil && want != int64(len(f.Tensors)) {
		return fmt.Errorf("key %q is %d, the %d parts hold %d tensors: download the model again",
			keySplitTensors, want, count, len(f.Tensors))
	}
	return nil
}

// addPart opens part i, counted from 0, and checks that its metadata has that number.
func (f *File) addPart(path string, i, count int64) error {
	h, err := f.addMapped(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	no, err := h.meta.Int(keySplitNo)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	said, err := splitCount(h)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if no != i || said != count {
		return fmt.Errorf("%s: says it is part %d of %d: these parts do not belong together, download the model again",
			path, no+1, said)
	}
	return nil
}
