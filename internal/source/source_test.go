package source

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCheck: whatever happens to a file after it was opened is noticed; what does not touch its bytes is not.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		want   string
	}{
		"nothing":  {func(*testing.T, string) {}, ""},
		"its mode": {func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o400)) }, ""},
		"shorter": {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 3)) },
			"the file has 3 bytes, and had 4 when it was opened: restore it and start again"},
		"longer": {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("longer"), 0o600)) },
			"the file has 6 bytes, and had 4 when it was opened: restore it and start again"},
		"written": {func(t *testing.T, path string) {
			require.NoError(t, os.Chtimes(path, time.Now(), time.Now().Add(time.Second)))
		}, "the file was written to after it was opened: restore it and start again"},
		"replaced": {func(t *testing.T, path string) {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".new", []byte("nine"), 0o600))
			require.NoError(t, os.Chtimes(path+".new", time.Now(), info.ModTime()))
			require.NoError(t, os.Rename(path+".new", path))
		}, "another file has taken the place of the one that was opened: restore it and start again"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			require.NoError(t, os.WriteFile(path, []byte("four"), 0o600))
			info, err := os.Stat(path)
			require.NoError(t, err)
			s := Source{Name: "m.gguf", Path: path, Size: 4, Info: info}
			c.change(t, path)
			now, err := os.Stat(path)
			require.NoError(t, err)
			err = s.Check(now)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, ErrChanged)
		})
	}
}
