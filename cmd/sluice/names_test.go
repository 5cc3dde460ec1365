package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseNamed(t *testing.T) {
	there := filepath.Join(t.TempDir(), "a=b.gguf")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	for value, want := range map[string]namedFile{
		"m.gguf": {path: "m.gguf"}, "n=m.gguf": {"n", "m.gguf"}, "n=a=b": {"n", "a=b"}, there: {path: there},
		"x=" + there: {"x", there},
	} {
		got, err := parseNamed(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got, value)
	}
	for value, says := range map[string]string{"": "names no file", "n=": "names no file", "=m.gguf": "empty name"} {
		_, err := parseNamed(value)
		require.ErrorContains(t, err, says, value)
	}
}
