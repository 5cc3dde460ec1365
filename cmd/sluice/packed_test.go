package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// TestConvertPacked: convert writes of a folder that another tool packed, or that its maker published, the file that it
// writes of the plain folder of the same numbers; and such a folder run as it is has the same logits.
func TestConvertPacked(t *testing.T) {
	converted := func(dir string) string {
		out := filepath.Join(t.TempDir(), "out.gguf")
		o := sluice("", "convert", "--type", "Q8_0", dir, "-o", out)
		require.Equal(t, exitDone, o.code, o.stderr)
		return out
	}
	logits := func(dir string) []byte {
		out := filepath.Join(t.TempDir(), "logits.f32")
		o := sluice("", "logits", "-m", dir, "--tokens", "1,5,9", "-o", out)
		require.Equal(t, exitDone, o.code, o.stderr)
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		return data
	}
	same := func(t *testing.T, plain, other string) {
		file := converted(plain)
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := os.ReadFile(converted(other))
		require.NoError(t, err)
		require.Equal(t, len(want), len(got))
		require.True(t, string(want) == string(got), "the files differ")
		require.Equal(t, logits(plain), logits(other))
	}
	for _, p := range converttest.Packings() {
		t.Run(p.Name, func(t *testing.T) {
			packed, plain := p.Folders(t)
			same(t, plain, packed)
		})
	}
	plain, originals := converttest.OriginalFolders(t)
	t.Run("Meta's", func(t *testing.T) { same(t, plain, originals["rows"]) })
	t.Run("Mistral's", func(t *testing.T) { same(t, plain, originals["safetensors"]) })
}
