package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tree makes folders as `make release` does, with programs of a few bytes.
func tree(t *testing.T, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append([]string{"all/LICENSE", "all/sluice.1", "linux-amd64/sluice", "darwin-arm64/sluice",
		"windows-amd64/sluice.exe"}, more...) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(name), 0o600))
	}
	return dir
}

// TestPack: each system has its files, equal trees give equal bytes, and the checksums hold.
func TestPack(t *testing.T) {
	one, two := tree(t), tree(t)
	require.NoError(t, run(one, "1.2.3", time.Unix(1e9, 0)))
	require.NoError(t, run(two, "1.2.3", time.Unix(1e9, 0)))
	sums, err := os.ReadFile(filepath.Join(one, "SHA256SUMS"))
	require.NoError(t, err)
	again, err := os.ReadFile(filepath.Join(two, "SHA256SUMS"))
	require.NoError(t, err)
	require.Equal(t, string(sums), string(again))
	var names []string
	for line := range strings.Lines(string(sums)) {
		name := strings.TrimSuffix(line[66:], "\n")
		names = append(names, name)
		data, err := os.ReadFile(filepath.Join(one, name))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name), line, "as sha256sum -c reads it")
	}
	require.Equal(t, []string{"sluice-1.2.3-darwin-arm64.tar.gz", "sluice-1.2.3-linux-amd64.tar.gz",
		"sluice-1.2.3-windows-amd64.zip", "sluice_1.2.3_amd64.deb"}, names)
	modes := modesIn(t, filepath.Join(one, "sluice-1.2.3-linux-amd64.tar.gz"))
	require.EqualValues(t, 0o755, modes["sluice-1.2.3-linux-amd64/sluice"])
	require.EqualValues(t, 0o644, modes["sluice-1.2.3-linux-amd64/LICENSE"])
	require.ErrorContains(t, run(tree(t, "all/news.txt"), "1.2.3", time.Unix(1e9, 0)), "news.txt has no place in a package")
	require.ErrorContains(t, run(tree(t), "v1", time.Unix(1e9, 0)), "is no version of a package")
}

// modesIn are the modes of a tar.gz's files, by name.
func modesIn(t *testing.T, path string) map[string]int64 {
	t.Helper()
	packed, err := os.ReadFile(path)
	require.NoError(t, err)
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	modes := map[string]int64{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return modes
		}
		require.NoError(t, err)
		modes[h.Name] = h.Mode
	}
}
