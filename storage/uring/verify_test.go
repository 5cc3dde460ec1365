package uring

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/source"
)

// TestVerify: what was written is found again, to the last byte of a file that is no number of pieces or blocks; one
// byte that is another one is seen, wherever it is, and so is a file that is shorter.
func TestVerify(t *testing.T) {
	const size = 20*verifiedPiece + 123
	written := content(size)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, written, 0o600))
	s := source.Source{Name: "a file", Path: path, Size: size}
	_, err := Verify(s, written)
	require.NoError(t, err)

	for _, at := range []int{0, verifiedPiece, 17*verifiedPiece + 5, size - 1} {
		written[at]++
		_, err = Verify(s, written)
		require.ErrorContains(t, err, "is not what was written")
		written[at]--
	}
	_, err = Verify(s, written[1:])
	require.ErrorContains(t, err, "bytes were written, and the file has")
	require.NoError(t, os.Truncate(path, size-1))
	_, err = Verify(s, written)
	require.ErrorContains(t, err, "the file has")
}
