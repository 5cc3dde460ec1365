package safefile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSummed: what was written is read, and of a file that is missing, cut or changed anywhere nothing is.
func TestSummed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file")
	read := func() []byte {
		data, err := ReadSummed(path)
		require.NoError(t, err)
		return data
	}
	require.Nil(t, read())
	require.NoError(t, WriteSummed(path, []byte("some data")))
	require.Equal(t, "some data", string(read()))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, WriteSummed(path, []byte("some data")))
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "it is left as it is")
	for i := range whole {
		require.NoError(t, os.WriteFile(path, whole[:i], 0o600))
		require.Nil(t, read(), "%d bytes", i)
		whole[i] ^= 1
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		require.Nil(t, read(), "byte %d", i)
		whole[i] ^= 1
	}
	require.NoError(t, WriteSummed(path, []byte("others")))
	require.Equal(t, "others", string(read()))
	_, err = ReadSummed(filepath.Dir(path))
	require.Error(t, err)
}
