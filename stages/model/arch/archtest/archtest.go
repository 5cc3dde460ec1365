// Package archtest reads model files for tests of devices: recorded by their architecture, and bound.
//
// Only tests import it.
package archtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Open is the backendtest.Loader of GGUF files. The file is closed when the test ends.
func Open(t testing.TB, path string, edit func(*meta.Map)) *backendtest.Model {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	if edit != nil {
		edit(&f.Meta)
	}
	return Model(t, f)
}

// Golden holds a device to the answers that were recorded of trained models, wherever the recorder and exact arithmetic
// are sure: K-quants, experts, and bfloat16.
func Golden(t *testing.T, d backend.Device) {
	t.Helper()
	for _, name := range []string{"mini-Q4_K_M", "moe-Q4_K_M", "draft-bf16"} {
		m := Open(t, filepath.Join(testref.Dir(t), "models", name+".gguf"), nil)
		backendtest.Golden(t, d, m, name, (*testref.Answer).SureIfExact)
	}
}

// Model records and binds the model of a file.
func Model(t testing.TB, f *gguf.File) *backendtest.Model {
	t.Helper()
	has := func(name string) bool { _, ok := f.Tensor(name); return ok }
	p, err := arch.Record(&f.Meta, has, arch.Options{})
	require.NoError(t, err)
	tensors := make([]ir.Tensor, len(f.Tensors))
	for i, x := range f.Tensors {
		tensors[i] = ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape}
	}
	m, err := backendtest.NewModel(p, tensors, func(i int, use func([]byte) error) error {
		return f.View(&f.Tensors[i], use)
	})
	require.NoError(t, err)
	return m
}
