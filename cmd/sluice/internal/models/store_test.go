package models

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/storage/others"
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
		path, err := Locate(e, value)
		require.NoError(t, err, value)
		require.Equal(t, want, path, value)
	}
	require.NoError(t, os.WriteFile("mini", nil, 0o600))
	path, err := Locate(e, "mini")
	require.NoError(t, err)
	require.Equal(t, "mini", path, "what is there comes first")
	for value, want := range map[string]string{
		"Ann/Other": "Ann/Other: there is no such file, and Ann/Other is not in the store (" + s.Dir() +
			"), which sluice list shows: get it with sluice pull Ann/Other",
		"a/b/c/d": `a/b/c/d: there is no such file, and "a/b/c/d" is no name of a model: want OWNER/NAME[:QUANT], or NAME[:TAG] for Ollama's`,
	} {
		_, err := Locate(e, value)
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
		e := envtest.NewEnv("")
		e.Lookup = func(name string) (string, bool) { v, ok := c.vars[name]; return v, ok }
		dir, err := storeDir(e)
		if c.want == "" {
			require.ErrorContains(t, err, "name a folder by SLUICE_STORE")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, filepath.FromSlash(c.want), dir)
	}
}

// Other programs' folders are where their own variables say.
func TestOtherPlaces(t *testing.T) {
	service := "/usr/share/ollama/.ollama/models"
	studio := []string{"/h/.lmstudio/models", "/h/.cache/lm-studio/models"}
	for _, c := range []struct {
		vars map[string]string
		want others.Places
	}{
		{nil, others.Places{}},
		{map[string]string{"HOME": "/h"}, others.Places{Ollama: []string{"/h/.ollama/models", service}, LMStudio: studio,
			HuggingFace: []string{"/h/.cache/huggingface/hub"}}},
		{map[string]string{"USERPROFILE": "/h", "OLLAMA_MODELS": "/o", "XDG_CACHE_HOME": "/c"}, others.Places{Ollama: []string{"/o"},
			LMStudio: studio, HuggingFace: []string{"/c/huggingface/hub"}}},
		{map[string]string{"HF_HOME": "/f", "XDG_CACHE_HOME": "/c"}, others.Places{HuggingFace: []string{"/f/hub"}}},
		{map[string]string{"HF_HUB_CACHE": "/b", "HF_HOME": "/f"}, others.Places{HuggingFace: []string{"/b"}}},
	} {
		e := envtest.NewEnv("")
		e.Lookup = func(name string) (string, bool) { v, ok := c.vars[name]; return v, ok }
		require.Equal(t, c.want, OtherPlaces(e), "%v", c.vars)
	}
}
