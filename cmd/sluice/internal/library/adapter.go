package library

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/lora"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/store"
)

// mostAdapters is how many adapters a model may have of its own.
const mostAdapters = 8

// AdaptBy adds uploaded adapters, GGUF files, to the material by their digests, in the order of their names.
func (b *Builder) AdaptBy(from *Material, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		d, err := store.ParseDigest(files[name])
		switch {
		case err != nil:
			return unfitf("adapters: %.80q: %w", name, err)
		case !strings.HasSuffix(strings.ToLower(name), ".gguf"):
			return unfitf("adapters: %.80q: want a GGUF file, which sluice convert FOLDER --base MODEL writes", name)
		}
		if err := from.adapt(d); err != nil {
			return err
		}
	}
	return nil
}

// adapt adds an adapter that is in the store.
func (m *Material) adapt(d store.Digest) error {
	n := 1
	for _, l := range m.layers {
		if l.Role == store.Adapter {
			n++
		}
	}
	if n > mostAdapters {
		return unfitf("there are more than %d adapters: want fewer", mostAdapters)
	}
	m.layers = append(m.layers, store.Layer{File: store.File{Role: store.Adapter, Name: fmt.Sprintf("adapter-%d.gguf", n),
		Digest: d}})
	return nil
}

// adaptFrom copies the adapters of a Modelfile into the store: GGUF files, or folders of PEFT, which become such.
func (b *Builder) adaptFrom(ctx context.Context, from *Material, modelfile string, paths []string) error {
	for _, path := range paths {
		if beside := filepath.Join(filepath.Dir(modelfile), path); !there(path) && there(beside) {
			path = beside
		}
		d, err := b.uploadAdapter(ctx, from, path)
		if err == nil {
			err = from.adapt(d)
		}
		if err != nil {
			return fmt.Errorf("ADAPTER %s: %w", path, err)
		}
	}
	return nil
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// uploadAdapter puts an adapter into the store as a GGUF file.
func (b *Builder) uploadAdapter(ctx context.Context, from *Material, path string) (store.Digest, error) {
	if !models.IsPEFT(path) {
		return b.upload(ctx, path)
	}
	scratch, err := b.Store.Scratch(ctx)
	if err != nil {
		return "", err
	}
	defer scratch.Close()
	model, err := b.lay(scratch.Dir, from)
	if err != nil {
		return "", err
	}
	base, err := namedmodel.OpenPath(model)
	if err != nil {
		return "", unfitf("what it is for: %s", without(scratch.Dir, err))
	}
	defer base.Close()
	a, files, err := models.OpenAdapter(path, &base.Meta)
	if err != nil {
		return "", err
	}
	defer files.Close()
	made := filepath.Join(scratch.Dir, ".adapter.gguf")
	if err := writeAdapter(made, a, base); err != nil {
		return "", err
	}
	return b.upload(ctx, made)
}

// writeAdapter writes an adapter for a model as a GGUF file, in F32, which holds any of its numbers.
func writeAdapter(path string, a *lora.Adapter, base *gguf.File) error {
	arch, err := base.Meta.String("general.architecture")
	if err != nil {
		return err
	}
	m, outputs := a.Outputs(arch)
	tensors := make([]gguf.Tensor, len(outputs))
	for i, o := range outputs {
		tensors[i] = gguf.Tensor{Name: o.Name, Type: quant.F32, Shape: o.Shape}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w, i := bufio.NewWriterSize(f, 1<<20), 0
	err = gguf.Write(w, m, tensors, func(_ *gguf.Tensor, to io.Writer) error {
		i++
		return outputs[i-1].Write(to, quant.F32)
	})
	return errors.Join(err, w.Flush(), f.Close())
}

// inspectAdapters refuses adapters that do not fit a model.
func (b *Builder) inspectAdapters(from *Material, base *gguf.File) error {
	for _, l := range from.layers {
		if l.Role != store.Adapter {
			continue
		}
		at, err := b.Store.Blob(l.Digest)
		if err != nil {
			return unfitf("%s: %w", l.Name, err)
		}
		a, files, err := models.OpenAdapter(at, &base.Meta)
		if err == nil {
			err = errors.Join(models.AdapterFits(a, base), files.Close())
		}
		if err != nil {
			return unfitf("%s: %s", l.Name, without(filepath.Dir(at), err))
		}
	}
	return nil
}

// upload copies a file into the store.
func (b *Builder) upload(ctx context.Context, path string) (store.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", env.OnFile(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("is no file")
	}
	if err != nil {
		return "", env.OnFile(path, err)
	}
	d, err := b.Store.Upload(ctx, "", info.Size(), contextReader{ctx, f})
	if err != nil {
		return "", env.OnFile(path, err)
	}
	return d, nil
}
