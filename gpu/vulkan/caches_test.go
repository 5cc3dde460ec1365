//go:build cgo && linux

package vulkan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
)

// TestCaches: a format whose forms shaders do not know is refused by name.
func TestCaches(t *testing.T) {
	k := &Kernels{}
	for _, key := range backend.KVNames() {
		for _, value := range backend.KVNamesOfV() {
			kv, err := backend.MixKV(key, value)
			require.NoError(t, err)
			require.NoError(t, k.Caches(kv.Format), kv)
		}
	}
	toy := backendtest.Toy().Format
	half := backend.Format{Name: "half a toy", K: backend.KVF16.K, V: toy.V}
	for _, f := range []backend.Format{toy, half} {
		err := k.Caches(f)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, "caches in "+f.Name+" have no kernels on Vulkan: keep them in f32, f16, q8, q5, q4, tq4 or tq3")
	}
}
