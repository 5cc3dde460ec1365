//go:build cgo && linux

package vulkan

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
)

// TestCacheFile saves, loads, and loads what was torn.
func TestCacheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	use := func() int {
		g := open(t)
		require.NoError(t, OpenCache(g.d, dir))
		before, err := g.d.CacheData()
		require.NoError(t, err)
		_, err = g.k.kernel(shaders.Argmax, shaders.ArgmaxConstants{}.List())
		require.NoError(t, err)
		require.NoError(t, SaveCache(g.d, dir))
		return len(before)
	}
	empty := use()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	kept, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, len(kept)-32, use(), "all that was saved is there again")
	kept[len(kept)/2] ^= 1
	require.NoError(t, os.WriteFile(files[0], kept, 0o600))
	require.Equal(t, empty, use(), "a damaged file is none")
}

// TestClosedAgain: to close a device once more does nothing, though it keeps kernels.
func TestClosedAgain(t *testing.T) {
	d, err := Open(0, Options{Cache: t.TempDir()})
	if err != nil {
		missing(t, err)
	}
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
}
