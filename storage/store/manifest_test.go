package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManifestSize: whatever is written can be read again, to the last byte; what is larger is not written.
func TestManifestSize(t *testing.T) {
	n, err := ParseName("o/m")
	require.NoError(t, err)
	m := &Manifest{Version: manifestVersion, Name: n.tagged().Full(), Files: []File{
		{Role: Weights, Name: "m.gguf", Size: 1, Digest: Digest("sha256:" + strings.Repeat("0", 64))}}}
	small, err := m.encode()
	require.NoError(t, err)
	m.Source = strings.Repeat("x", mostManifest-len(small)-len(`"source": `))
	near, err := m.encode()
	require.NoError(t, err)
	m.Source += strings.Repeat("x", mostManifest-len(near))
	data, err := m.encode()
	require.NoError(t, err)
	require.Len(t, data, mostManifest)
	path := filepath.Join(t.TempDir(), "m.json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	again, err := readManifest(path)
	require.NoError(t, err)
	require.Equal(t, m, again)
	m.Source += "x"
	_, err = m.encode()
	require.ErrorContains(t, err, "want less than 1048576")
}
