package gguf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMirror: all parts of a model have copies, of which a sample is compared.
func TestMirror(t *testing.T) {
	folder := writeSplit(t)
	parts, err := filepath.Glob(filepath.Join(folder, "*-00001-of-*.gguf"))
	require.NoError(t, err)
	require.Len(t, parts, 1)
	f, err := Open(parts[0])
	require.NoError(t, err)
	defer f.Close()
	require.Greater(t, f.Parts(), 1)
	copied := t.TempDir()
	for i := range f.Parts() {
		require.ErrorContains(t, f.Mirror(copied), "holds no copy of it")
		data, err := os.ReadFile(f.Part(i).Path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(copied, filepath.Base(f.Part(i).Path)), data, 0o600))
	}
	require.NoError(t, f.Mirror(copied))
	for i := range f.Parts() {
		s := f.Part(i)
		require.Len(t, s.Copies, 1)
		require.Equal(t, filepath.Join(copied, filepath.Base(s.Path)), s.Copies[0].Path)
		require.Equal(t, s.Size, s.Copies[0].Size)
	}
	require.ErrorContains(t, f.Mirror(folder), "is the file itself")
}

// TestMirrorIsCompared: files that differ anywhere in a sample, or in size, are no copies.
func TestMirrorIsCompared(t *testing.T) {
	data, err := os.ReadFile(references(t)[0])
	require.NoError(t, err)
	here, there := t.TempDir(), t.TempDir()
	path := filepath.Join(here, "m.gguf")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	for want, change := range map[string]func(b []byte) []byte{
		"it has":                                func(b []byte) []byte { return b[1:] },
		"bytes from 0 on differ: copy it again": func(b []byte) []byte { b[100] ^= 1; return b },
		"on differ: copy it again":              func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
	} {
		changed := change(append([]byte(nil), data...))
		require.NoError(t, os.WriteFile(filepath.Join(there, "m.gguf"), changed, 0o600))
		require.ErrorContains(t, f.Mirror(there), want)
	}
	m, err := Parse("memory", data)
	require.NoError(t, err)
	require.ErrorContains(t, m.Mirror(there), "it is in memory")
}
