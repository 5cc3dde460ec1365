package library

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// The token of hf auth login is found where the Hub's own program keeps it.
func TestLoginToken(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{"home/.cache/huggingface/token": "of home\n", "cache/huggingface/token": "of cache",
		"hub/token": " of hub ", "named": "named"} {
		at := filepath.Join(dir, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
	}
	set := map[string]string{}
	e := envtest.NewEnv("")
	e.Lookup = func(name string) (string, bool) { return set[name], set[name] != "" }
	for _, c := range []struct{ variable, value, want string }{
		{"NONE", "", ""}, {"HOME", "home", "of home"}, {"XDG_CACHE_HOME", "cache", "of cache"}, {"HF_HOME", "hub", "of hub"},
		{"HF_TOKEN_PATH", "named", "named"}, {"HF_TOKEN_PATH", "absent", ""},
	} {
		set[c.variable] = filepath.Join(dir, c.value)
		require.Equal(t, c.want, loginToken(e), c.variable)
	}
}
