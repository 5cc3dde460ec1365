package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// OpenUnchanged opens a model whose tensors are used by the names that they have: a GGUF file, a file of safetensors or
// of PyTorch, or the folder of one. It has no metadata but those of a GGUF file. The caller closes it.
func OpenUnchanged(path string) (*gguf.File, error) {
	info, err := os.Stat(path)
	var f *Folder
	switch {
	case err == nil && info.IsDir():
		f, err = Open(path)
	case err == nil && !slices.Contains([]string{".safetensors", ".pt", ".pth", ".bin"}, filepath.Ext(path)):
		return gguf.Open(path)
	default:
		f = &Folder{Path: path, byName: map[string]int{}}
		if err = f.add(path, ""); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	return f.unchanged()
}

// unchanged makes a file of a folder, which it closes if it fails.
func (f *Folder) unchanged() (*gguf.File, error) {
	pieces := make([]gguf.Piece, len(f.Files))
	for i, file := range f.Files {
		pieces[i] = gguf.Piece{Path: file.Path, Mapping: file.File}
	}
	tensors := make([]gguf.Tensor, len(f.Tensors))
	for i, t := range f.Tensors {
		typ, ok := t.Type.Quant()
		if !ok {
			err := fmt.Errorf("%s: tensor %.80q is of type %s: want F32, F16 or BF16", f.Path, t.Name, t.Type)
			return nil, errors.Join(err, f.Close())
		}
		shape := slices.Clone(t.Shape)
		slices.Reverse(shape)
		tensors[i] = gguf.Tensor{Name: t.Name, Type: typ, Shape: shape, Part: t.File, Offset: t.Offset}
	}
	return gguf.Assemble(f.Path, new(meta.Map), pieces, tensors)
}
