package ref_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func TestFixtures(t *testing.T) { backendtest.Fixtures(t, ref.New(), open, 1) }

func TestEmbeddings(t *testing.T) { backendtest.Embeddings(t, ref.New(), open, 1) }

// TestEmbeddedModel runs one recorded answer of a trained model in K-quants.
func TestEmbeddedModel(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	backendtest.Golden(t, ref.New(), model(t, f), "mini-Q4_K_M", 0.15, "chat-capital")
}

// open is the backendtest.Loader.
func open(t testing.TB, path string, edit func(*meta.Map)) *backendtest.Model {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	if edit != nil {
		edit(&f.Meta)
	}
	return model(t, f)
}

func model(t testing.TB, f *gguf.File) *backendtest.Model {
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
