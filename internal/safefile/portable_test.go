package safefile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnySystem: a file appears when it is whole, a name that is taken is kept or replaced as asked, and what was not
// committed leaves nothing, whatever the system's rules for open files are.
func TestAnySystem(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	content := func() string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	f, err := Create(path, 0o600, false)
	require.NoError(t, err)
	_, err = f.WriteString("first")
	require.NoError(t, err)
	require.NoError(t, Free(path), "it has no name yet")
	require.NoError(t, f.Commit())
	require.NoError(t, f.Close())
	require.Equal(t, "first", content())

	require.ErrorIs(t, Write(path, []byte("second"), 0o600, false), ErrTaken)
	require.Equal(t, "first", content())
	require.NoError(t, Write(path, []byte("third"), 0o600, true))
	require.Equal(t, "third", content())

	abandoned, err := Create(filepath.Join(folder, "other"), 0o600, false)
	require.NoError(t, err)
	scratch, err := Scratch(path)
	require.NoError(t, err)
	require.NoError(t, scratch.Close())
	require.NoError(t, abandoned.Close())
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, list, 1)

	_, _, err = Open(folder)
	require.ErrorContains(t, err, "is a folder, want a regular file")

	_, err = claimed(t, path)
	require.NoError(t, err)
	_, err = claimed(t, path)
	require.ErrorIs(t, err, ErrBusy)

	shared, err := Grow(filepath.Join(folder, "log"))
	require.NoError(t, err)
	_, err = Grow(filepath.Join(folder, "log"))
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, shared.Close())
	log, err := Append(filepath.Join(folder, "log"))
	require.NoError(t, err)
	for _, text := range []string{"a", "b"} {
		_, err = log.WriteString(text)
		require.NoError(t, err)
	}
	require.NoError(t, log.Close())
	path = filepath.Join(folder, "log")
	require.Equal(t, "ab", content())
}

// claimed claims the temporary name of a file until the test ends.
func claimed(t *testing.T, path string) (*os.File, error) {
	f, _, err := claim(path, 0o600)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, f.Close()) })
	}
	return f, err
}
