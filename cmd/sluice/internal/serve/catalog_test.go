package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
)

// A folder may change, and of a model in parts the first file is its name.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(0, 0)
	f, err := folder(dir, func() time.Time { return now })
	require.NoError(t, err)
	require.Empty(t, f.list())
	for _, name := range []string{"z.gguf", "big-00001-of-00002.gguf", "big-00002-of-00002.gguf", ".hidden.gguf"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.gguf"), 0o700))
	require.Empty(t, f.list(), "it has just been looked at")
	now = now.Add(fresh)
	require.Equal(t, []string{"big", "z"}, f.list())
	path, ok := f.path("big")
	require.True(t, ok)
	require.Equal(t, filepath.Join(dir, "big-00001-of-00002.gguf"), path)
	both := catalogs{listed{{Name: "z", Path: "mine"}, {Name: "y", Path: "other"}}, f}
	require.Equal(t, []string{"z", "y", "big"}, both.list())
	path, _ = both.path("z")
	require.Equal(t, "mine", path)
	_, ok = both.path("../z")
	require.False(t, ok)
	_, err = folder(filepath.Join(dir, "none"), time.Now)
	require.ErrorContains(t, err, "--models")
}

// The models of the store are those that sluice list shows.
func TestStored(t *testing.T) {
	e, s := envtest.WithStore(t)
	envtest.KeepMini(t, s, "hf.co/Ann/Mini-GGUF:Q8_0")
	all, err := stored(e)
	require.NoError(t, err)
	require.Equal(t, []string{"Ann/Mini-GGUF:Q8_0"}, all.list())
	path, ok := all.path("Ann/Mini-GGUF:Q8_0")
	require.True(t, ok)
	file, err := models.OpenWeights(e, path)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, ok = all.path("Ann/Mini-GGUF")
	require.False(t, ok)
}
