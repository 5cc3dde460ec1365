package models

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/namedmodel"
)

func TestLocate(t *testing.T) {
	e, s := envtest.WithStore(t)
	envtest.KeepMini(t, s, "hf.co/Ann/Mini-GGUF:Q8_0")
	envtest.KeepMini(t, s, "ollama.com/library/mini:latest")
	stored, err := s.Resolve("mini")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("Ann", 0o755))
	for value, want := range map[string]string{
		"": "", "mini": stored, "MINI:latest": stored, "Ann/Mini-GGUF": stored, "hf.co/ann/mini-gguf:q8_0": stored,
		"none.gguf": "none.gguf", "./mini": "./mini", "/none": "/none", "~/mini": "~/mini", "Ann": "Ann",
	} {
		path, err := namedmodel.Locate(e.Lookup, value)
		require.NoError(t, err, value)
		require.Equal(t, want, path, value)
	}
	require.NoError(t, os.WriteFile("mini", nil, 0o600))
	path, err := namedmodel.Locate(e.Lookup, "mini")
	require.NoError(t, err)
	require.Equal(t, "mini", path, "what is there comes first")
	for value, want := range map[string]string{
		"Ann/Other": "Ann/Other: there is no such file, and Ann/Other is not in the store (" + s.Dir() +
			"), which sluice list shows: get it with sluice pull Ann/Other",
		"a/b/c/d": `a/b/c/d: there is no such file, and "a/b/c/d" is no name of a model: want OWNER/NAME[:QUANT], or NAME[:TAG] for Ollama's`,
	} {
		_, err := namedmodel.Locate(e.Lookup, value)
		require.EqualError(t, err, want)
	}
}
