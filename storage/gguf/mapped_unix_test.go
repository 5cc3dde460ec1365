//go:build unix

package gguf

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestTruncatedAfterOpen cuts the file below an open mapping: in the middle of the tensor's pages, where the kernel
// signals, and inside its last page, where it only gives zeros.
func TestTruncatedAfterOpen(t *testing.T) {
	for _, missing := range []int64{1, 100, 4096, 300_000} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		writeFile(t, path, new(meta.Map), Tensor{Name: "w", Type: quant.F32, Shape: []int{1000, 100}})
		f, err := Open(path)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, info.Size()-missing))

		w, _ := f.Tensor("w")
		copied := make([]byte, w.Size)
		err = f.View(w, func(data []byte) error { copy(copied, data); return nil })
		require.EqualError(t, err, path+`: tensor "w": the file was truncated or cannot be read any more: `+
			"restore it and start again", "%d bytes missing", missing)
		require.NoError(t, f.Close())
	}
}

// TestWrittenAfterOpen: bytes that somebody may have replaced are not used.
func TestWrittenAfterOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	writeFile(t, path, new(meta.Map), Tensor{Name: "w", Type: quant.F32, Shape: []int{1000, 100}})
	old := time.Now().Add(-time.Hour) // not within the grain of its clock
	require.NoError(t, os.Chtimes(path, old, old))
	f, err := Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	w, _ := f.Tensor("w")
	require.NoError(t, f.View(w, func([]byte) error { return nil }))
	require.NoError(t, f.Check())
	other, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = other.WriteAt([]byte("bytes"), 100_000)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	const want = "the file was written to after it was opened: restore it and start again"
	require.EqualError(t, f.View(w, func([]byte) error { return nil }), path+`: tensor "w": `+want)
	require.EqualError(t, f.Check(), path+": "+want)
}
