package gguf

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/meta"
)

// Create writes a file as Write does. It grows beside its place and takes it when it is complete and safe; after an
// error nothing is left of it, and what was there before stays. Whatever has the name is replaced, a device too.
func Create(path string, m *meta.Map, tensors []Tensor, data func(t *Tensor, w io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err = Write(w, m, tensors, data); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}
