// Package cgml reads packages of models of Mistral's kind (.cgml): archives (ZIP) with a document that says what the
// model is, its tokenizer, and a file for each tensor, which is used where it lies.
//
// Whatever a package says is checked against its size and the other parts before anything is allocated for it. What
// compressed tensors (BCML1) hold is left to internal/packed.
package cgml

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
)

// Package is what a file holds, as Mistral's own folders would say it.
type Package struct {
	Texts   map[string][]byte // params.json and tokenizer.model
	Tensors []element.Stored  // in the order of the model
}

const tokenizer = "tokenizer.model"

const (
	mostDocument  = 64 << 20 // bytes, unpacked: those of the largest model take one
	mostTokenizer = 64 << 20
	mostFiles     = 1 << 16
)

// Parse reads a package.
func Parse(r io.ReaderAt, size int64) (*Package, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("is no archive (ZIP), as packages are: %w", err)
	}
	if len(archive.File) > mostFiles {
		return nil, fmt.Errorf("has %d files, want at most %d", len(archive.File), mostFiles)
	}
	p := &pack{archive: archive, size: size, tensors: map[int]*zip.File{}}
	if err := p.checkFormat(); err != nil {
		return nil, err
	}
	root, err := p.document("model.bin")
	if err != nil {
		return nil, err
	}
	if err := p.list(); err != nil {
		return nil, err
	}
	m := &model{pack: p, shapes: map[string][2]int{}}
	if err := m.read(root); err != nil {
		return nil, fmt.Errorf("model.bin: %w", err)
	}
	params, err := json.Marshal(m.params)
	if err != nil {
		return nil, fmt.Errorf("model.bin: %w", err)
	}
	made := &Package{Texts: map[string][]byte{"params.json": params}, Tensors: m.found}
	if !p.has(tokenizer) {
		return made, nil // it runs by ids
	}
	made.Texts[tokenizer], err = p.file(tokenizer, mostTokenizer)
	return made, err
}

// pack is an open archive.
type pack struct {
	archive *zip.Reader
	size    int64
	tensors map[int]*zip.File // by the numbers in their names
}

func (p *pack) has(name string) bool {
	return slices.ContainsFunc(p.archive.File, func(f *zip.File) bool { return f.Name == name })
}

// file unpacks a file.
func (p *pack) file(name string, most int64) ([]byte, error) {
	for _, f := range p.archive.File {
		if f.Name != name {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer r.Close()
		data, err := io.ReadAll(io.LimitReader(r, most+1))
		if err == nil && int64(len(data)) > most {
			err = fmt.Errorf("has more than %d bytes", most)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("holds no %s: is it a package of a model?", name)
}

func (p *pack) document(name string) (*node, error) {
	data, err := p.file(name, mostDocument)
	if err != nil {
		return nil, err
	}
	root, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return root, nil
}

// checkFormat reads what the package says of itself.
func (p *pack) checkFormat() error {
	const kind = "Mistral.Model.Transformer"
	about, err := p.document("metadata.bin")
	if err != nil {
		return err
	}
	version, name := about.child("formatVersion"), about.child("modelType")
	switch {
	case version == nil || name == nil:
		return errors.New("metadata.bin: has no formatVersion, or no modelType")
	case version.text != "1":
		return fmt.Errorf("metadata.bin: formatVersion is %.40q, want 1", version.text)
	case name.text != kind:
		return fmt.Errorf("metadata.bin: modelType is %.80q, want %s", name.text, kind)
	}
	return nil
}

// list finds the files of tensors, Tensors/NNN.bin.
func (p *pack) list() error {
	for _, f := range p.archive.File {
		number, ok := strings.CutSuffix(f.Name, ".bin")
		if !ok || path.Dir(f.Name) != "Tensors" {
			continue
		}
		n, err := strconv.ParseUint(path.Base(number), 10, 31)
		if err != nil {
			return fmt.Errorf("%.80q: want a number as its name", f.Name)
		}
		if p.tensors[int(n)] != nil {
			return fmt.Errorf("%.80q: tensor %d is there twice", f.Name, n)
		}
		p.tensors[int(n)] = f
	}
	return nil
}

// place is where a tensor's bytes lie in the package.
func (p *pack) place(id int, size int64) (offset int64, err error) {
	f := p.tensors[id]
	switch {
	case f == nil:
		return 0, fmt.Errorf("its file, Tensors/%d.bin, is missing: is the package complete?", id)
	case f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64:
		return 0, fmt.Errorf("%s is compressed, and cannot be used where it lies: pack the model without compression", f.Name)
	case f.UncompressedSize64 != uint64(size):
		return 0, fmt.Errorf("%s has %d bytes, and its shape takes %d: the package is damaged", f.Name, f.UncompressedSize64,
			size)
	}
	if offset, err = f.DataOffset(); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Name, err)
	}
	if offset < 0 || offset > p.size-size {
		return 0, fmt.Errorf("%s lies behind the end of the file: is the download complete?", f.Name)
	}
	return offset, nil
}
