package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestWeightsTravelOnce: a table that embedding and head share, and divisors that layers share, are read once.
func TestWeightsTravelOnce(t *testing.T) {
	for _, name := range []string{"gemma2", "llama3rope", "qwen2moe"} {
		f, err := gguf.Open(fixturePath(t, name))
		require.NoError(t, err)
		want := int64(0)
		for _, x := range f.Tensors {
			want += x.Size
		}
		require.NoError(t, f.Close())
		e := startFixture(t, name, nil)
		loaded, total := e.Loaded()
		require.Equal(t, want, total, name)
		require.Equal(t, want, loaded, name)
	}
}
