package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/namedmodel"
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

// Models lie deeper in the folders of other programs: they keep the name of their file, and by its path where that is
// another's.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	blob := filepath.Join(dir, "blobs", "0123")
	for _, name := range []string{"top.gguf", "Ann/One-GGUF/one-Q4_0.gguf", "Bob/Two-GGUF/top.gguf", "Bob/Two-GGUF/mmproj-x.gguf",
		"Bob/Big/big-00001-of-00002.gguf", "Bob/Big/big-00002-of-00002.gguf", ".hidden/no.gguf", "a/b/c/d/e/f/deep.gguf",
		"a/b/c/d/e/f/g/deeper.gguf", "blobs/0123"} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, nil, 0o600))
	}
	linked := filepath.Join(dir, "snapshots", "rev", "linked.gguf")
	require.NoError(t, os.MkdirAll(filepath.Dir(linked), 0o700))
	require.NoError(t, os.Symlink(blob, linked))
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "circle")))
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	require.Equal(t, map[string]string{
		"top": at("top.gguf"), "one-Q4_0": at("Ann", "One-GGUF", "one-Q4_0.gguf"), "Bob/Two-GGUF/top": at("Bob", "Two-GGUF", "top.gguf"),
		"big": at("Bob", "Big", "big-00001-of-00002.gguf"), "deep": at("a", "b", "c", "d", "e", "f", "deep.gguf"), "linked": linked,
	}, filesIn(dir))
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
	file, err := namedmodel.OpenWeights(e.Lookup, path)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, ok = all.path("Ann/Mini-GGUF")
	require.False(t, ok)
}

// TestSlug: a title becomes a name that is the same in shells, addresses and YAML.
func TestSlug(t *testing.T) {
	for title, want := range map[string]string{
		"Sluice Mini Dense": "Sluice-Mini-Dense", "Qwen3 8B Instruct (GGUF)": "Qwen3-8B-Instruct-GGUF", "a/b: c\td": "a-b-c-d",
		"v1.5_x-y": "v1.5_x-y", "  ": "", "…!": "", "Ünïcode 模型": "Ünïcode-模型", "a\xffb": "a-b", "../x": "x", "-m": "m",
		`"; rm -rf`: "rm--rf",
	} {
		require.Equal(t, want, slug(title), title)
	}
}
