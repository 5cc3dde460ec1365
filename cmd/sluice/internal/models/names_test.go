package models

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseNamed(t *testing.T) {
	there := filepath.Join(t.TempDir(), "a=b.gguf")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	for value, want := range map[string]NamedFile{
		"m.gguf": {Path: "m.gguf"}, "n=m.gguf": {"n", "m.gguf"}, "n=a=b": {"n", "a=b"}, there: {Path: there},
		"x=" + there: {"x", there},
	} {
		got, err := ParseNamed(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got, value)
	}
	for value, says := range map[string]string{"": "names no file", "n=": "names no file", "=m.gguf": "empty name"} {
		_, err := ParseNamed(value)
		require.ErrorContains(t, err, says, value)
	}
}
