package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys come from the command line, files and the environment, all at once.
func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte("# ours\n\n first \nsecond\r\n"), 0o600))
	e := testEnv("third\n")
	e.lookup = func(name string) (string, bool) { return " fourth\n", name == keyVariable }
	c := serveCmd{APIKey: []string{"zeroth"}, APIKeyFile: []string{file, "-"}}
	keys, err := c.keys(e)
	require.NoError(t, err)
	require.Equal(t, []string{"zeroth", "first", "second", "third", "fourth"}, keys)
	e.lookup = func(string) (string, bool) { return "", true }
	_, err = (&serveCmd{}).keys(e)
	require.ErrorContains(t, err, "SLUICE_API_KEY is empty")
}
