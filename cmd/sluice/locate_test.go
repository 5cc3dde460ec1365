package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/store"
)

// withStore is an env whose store lies in a folder of the test.
func withStore(t *testing.T, args ...string) (*env, *store.Store) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := store.Open(dir)
	require.NoError(t, err)
	return inStore(dir, args...), s
}

func inStore(dir string, args ...string) *env {
	e := testEnv("", args...)
	e.lookup = func(name string) (string, bool) {
		if name == "SLUICE_STORE" {
			return dir, true
		}
		return "", false
	}
	return e
}

// keepMini puts the embedded model into a store under a whole name.
func keepMini(t *testing.T, s *store.Store, name string) {
	t.Helper()
	ctx, sum := context.Background(), sha256.Sum256(mini.GGUF)
	f := store.File{Role: store.Weights, Name: "mini.gguf", Size: int64(len(mini.GGUF)),
		Digest: store.Digest("sha256:" + hex.EncodeToString(sum[:]))}
	p, err := s.Begin(ctx, store.Manifest{Name: name, Files: []store.File{f}})
	require.NoError(t, err)
	defer p.Close()
	part, err := p.Partial(ctx, f, nil)
	require.NoError(t, err)
	if part != nil {
		require.NoError(t, part.Write(mini.GGUF, 0))
		for i := range part.Pieces() {
			require.NoError(t, part.Done(i))
		}
		require.NoError(t, part.Commit())
	}
	require.NoError(t, p.Commit(ctx))
}

func TestLocate(t *testing.T) {
	e, s := withStore(t)
	keepMini(t, s, "hf.co/Ann/Mini-GGUF:Q8_0")
	keepMini(t, s, "ollama.com/library/mini:latest")
	stored, err := s.Resolve("mini")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("Ann", 0o755))
	for value, want := range map[string]string{
		"": "", "mini": stored, "MINI:latest": stored, "Ann/Mini-GGUF": stored, "hf.co/ann/mini-gguf:q8_0": stored,
		"none.gguf": "none.gguf", "./mini": "./mini", "/none": "/none", "~/mini": "~/mini", "Ann": "Ann",
	} {
		path, err := e.locate(value)
		require.NoError(t, err, value)
		require.Equal(t, want, path, value)
	}
	require.NoError(t, os.WriteFile("mini", nil, 0o600))
	path, err := e.locate("mini")
	require.NoError(t, err)
	require.Equal(t, "mini", path, "what is there comes first")
	for value, want := range map[string]string{
		"Ann/Other": "Ann/Other: there is no such file, and Ann/Other is not in the store (" + s.Dir() +
			"): get it with sluice pull Ann/Other",
		"a/b/c/d": `a/b/c/d: there is no such file, and "a/b/c/d" is no name of a model: want OWNER/NAME[:QUANT], or NAME[:TAG] for Ollama's`,
	} {
		_, err := e.locate(value)
		require.EqualError(t, err, want)
	}
}

func TestStoreDir(t *testing.T) {
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"SLUICE_STORE": "/s", "XDG_DATA_HOME": "/d", "HOME": "/h"}, "/s"},
		{map[string]string{"XDG_DATA_HOME": "/d", "HOME": "/h"}, "/d/sluice/store"},
		{map[string]string{"XDG_DATA_HOME": "d", "HOME": "/h"}, "/h/.local/share/sluice/store"},
		{map[string]string{"HOME": "/h"}, "/h/.local/share/sluice/store"},
		{nil, ""},
	} {
		e := testEnv("")
		e.lookup = func(name string) (string, bool) { v, ok := c.vars[name]; return v, ok }
		dir, err := e.storeDir()
		if c.want == "" {
			require.ErrorContains(t, err, "name a folder by SLUICE_STORE")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, filepath.FromSlash(c.want), dir)
	}
}

// A name does where a path does.
func TestRunByName(t *testing.T) {
	e, s := withStore(t, "run", "-m", "mini", "What is the capital of France?")
	keepMini(t, s, "ollama.com/library/mini:latest")
	require.Equal(t, exitDone, run(e), "%s", e.stderr)
	require.Equal(t, "The capital of France is Paris.\n", fmt.Sprint(e.stdout))

	e = inStore(s.Dir(), "inspect", "other")
	require.Equal(t, exitFailed, run(e))
	require.Contains(t, fmt.Sprint(e.stderr), "other is not in the store ("+s.Dir()+"): get it with sluice pull other")
}
