package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/source"
)

// Mirror lets readers of the parts also read from copies: files of the same names in folder, on another drive, say.
// It compares sizes, the beginning, the end, and sample blocks, and fails if they differ. Readers report later
// differences themselves.
func (f *File) Mirror(folder string) error {
	copies := make([]source.Source, len(f.parts))
	for i := range f.parts {
		var err error
		if copies[i], err = f.parts[i].mirror(folder); err != nil {
			return fmt.Errorf("%s: %w", f.parts[i].name, err)
		}
	}
	for i := range f.parts {
		f.parts[i].copies = append(f.parts[i].copies, copies[i])
	}
	return nil
}

func (p *part) mirror(folder string) (s source.Source, err error) {
	if p.mapping == nil {
		return s, errors.New("it is in memory, and needs no mirror: leave it out")
	}
	path := filepath.Join(folder, filepath.Base(p.path))
	file, info, err := safefile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s holds no copy of it: copy it there, or leave the mirror out: %w", folder, err)
	}
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if os.SameFile(info, p.mapping.Info) {
		return s, fmt.Errorf("%s is the file itself, and no copy of it: name another folder", path)
	}
	if info.Size() != p.mapping.Info.Size() {
		return s, fmt.Errorf("%s is no copy: it has %d bytes, and not %d: copy it again", path, info.Size(),
			p.mapping.Info.Size())
	}
	if err := p.compare(file); err != nil {
		return s, fmt.Errorf("%s is no copy: %w", path, err)
	}
	return source.Source{Name: path, Path: path, Size: info.Size(), Info: info}, nil
}

const (
	comparedStart = 1 << 20 // bytes of a file: its directory, or much of it
	comparedBlock = 4096
	comparedCount = 256 // blocks, spread evenly over the file
)

// compare compares a sample of a file's blocks with the part's.
func (p *part) compare(file io.ReaderAt) error {
	size := p.mapping.Info.Size()
	if err := p.same(file, 0, min(comparedStart, size)); err != nil {
		return err
	}
	for i := range int64(comparedCount) {
		n := min(comparedBlock, size)
		if err := p.same(file, (size-n)/(comparedCount-1)*i, n); err != nil {
			return err
		}
	}
	return p.same(file, size-min(comparedBlock, size), min(comparedBlock, size))
}

// same compares n bytes of the part and of its copy, from an offset on.
func (p *part) same(file io.ReaderAt, from, n int64) error {
	var here, there [comparedBlock]byte
	for at := from; at < from+n; at += comparedBlock {
		a, b := here[:min(comparedBlock, from+n-at)], there[:min(comparedBlock, from+n-at)]
		if _, err := p.mapping.ReadAt(a, at); err != nil {
			return err
		}
		if _, err := file.ReadAt(b, at); err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("bytes from %d on differ: copy it again", at)
		}
	}
	return nil
}
