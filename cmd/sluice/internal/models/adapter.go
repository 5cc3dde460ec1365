package models

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/lora"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// OpenAdapter opens an adapter, a GGUF file or a folder of PEFT, for a model whose file has metadata base. Its numbers
// are read from the files until they are closed.
func OpenAdapter(path string, base *meta.Map) (*lora.Adapter, io.Closer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return openPEFT(path, base)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	tensors := make([]lora.Tensor, len(f.Tensors))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		tensors[i] = lora.Tensor{Name: t.Name, Read: func(to []float32) error {
			return f.View(t, func(data []byte) error { return quant.Dequantize(t.Type, to, data) })
		}}
		for _, n := range t.Shape {
			tensors[i].Shape = append([]int{n}, tensors[i].Shape...)
		}
		if !quant.HasCodec(t.Type) {
			return nil, nil, errors.Join(fmt.Errorf("%s: tensor %.100q: type %s cannot be decoded", path, t.Name, t.Type), f.Close())
		}
	}
	a, err := lora.GGUF(path, &f.Meta, tensors)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return a, f, nil
}

// IsPEFT says whether a folder is an adapter's.
func IsPEFT(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, lora.ConfigFile))
	return err == nil && info.Mode().IsRegular()
}

// openPEFT opens a folder of PEFT.
func openPEFT(path string, base *meta.Map) (*lora.Adapter, io.Closer, error) {
	if !IsPEFT(path) {
		return nil, nil, fmt.Errorf("%s: is a folder without %s: want an adapter, a GGUF file or a folder of PEFT", path,
			lora.ConfigFile)
	}
	folder, err := checkpoint.Open(path)
	if err != nil {
		return nil, nil, err
	}
	a, err := peftOf(folder, base)
	if err != nil {
		return nil, nil, errors.Join(err, folder.Close())
	}
	return a, folder, nil
}

func peftOf(folder *checkpoint.Folder, base *meta.Map) (*lora.Adapter, error) {
	text, err := folder.Text(lora.ConfigFile)
	if err != nil {
		return nil, err
	}
	tensors := make([]lora.Tensor, len(folder.Tensors))
	for i := range folder.Tensors {
		t := &folder.Tensors[i]
		if !t.Type.Real() {
			return nil, fmt.Errorf("%s: tensor %.100q is of type %s, want F32, F16 or BF16", folder.Path, t.Name, t.Type)
		}
		tensors[i] = lora.Tensor{Name: t.Name, Shape: t.Shape, Read: func(to []float32) error {
			return folder.View(t.Name, func(data []byte) error {
				for i := range to {
					to[i] = t.Type.Widen(data[i*t.Type.Size():])
				}
				return nil
			})
		}}
	}
	return lora.PEFT(folder.Path, text, tensors, func(module string, rows int) ([]lora.Named, error) {
		matrices, err := convert.ModuleMatrices(base, module, rows)
		all := make([]lora.Named, len(matrices))
		for i, m := range matrices {
			all[i] = lora.Named{Matrix: m.Name, Rows: m.Rows}
		}
		return all, err
	})
}

// AdapterFits says what of an adapter does not fit the model in a file; nil: it fits.
func AdapterFits(a *lora.Adapter, base *gguf.File) error {
	has := func(name string) bool { _, ok := base.Tensor(name); return ok }
	program, err := arch.Record(&base.Meta, has, arch.Options{Adapted: true})
	if err != nil {
		return fmt.Errorf("%s: %w", base.Name, err)
	}
	return a.Fits(program)
}
