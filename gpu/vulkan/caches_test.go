//go:build cgo && linux

package vulkan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
)

// TestCaches: formats that shaders do not know are refused by name, whichever side they differ on.
func TestCaches(t *testing.T) {
	k := &Kernels{}
	for _, kv := range []backend.KV{backend.KVF32, backend.KVF16, backend.KVQ8} {
		require.NoError(t, k.Caches(kv.Format))
	}
	mixed := backend.Format{Name: "f16 and q8", K: backend.KVF16.K, V: backend.KVQ8.V}
	for _, f := range []backend.Format{mixed, backendtest.Toy().Format} {
		err := k.Caches(f)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, "caches in "+f.Name+" have no kernels on Vulkan: keep them in f32, f16 or q8")
	}
}
