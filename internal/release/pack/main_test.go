package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tree makes folders as `make release` does, with programs of a few bytes.
func tree(t *testing.T, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append([]string{"all/LICENSE", "all/sluice.1", "linux-amd64/sluice", "linux-arm64/sluice", "darwin-amd64/sluice",
		"darwin-arm64/sluice", "windows-amd64/sluice.exe", "windows-arm64/sluice.exe"}, more...) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(name), 0o600))
	}
	return dir
}

// parts are what programs are made of.
func parts(string) (*debug.BuildInfo, error) {
	return &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/sluice-ai/sluice"}}, nil
}

// manifestsName: each archive that a manifest names is in the release, and has the checksum that stands behind it; all
// archives but Debian's packages are named.
func manifestsName(t *testing.T, dir, sums string) {
	t.Helper()
	named := 0
	for _, name := range []string{"sluice.rb", "sluice-ai.sluice.installer.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		pair := regexp.MustCompile(`/download/v1\.2\.3/(\S+?)"?\n\s+(?:sha256 "|InstallerSha256: )([0-9A-Fa-f]{64})`)
		for _, m := range pair.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, sums, strings.ToLower(m[2])+"  "+m[1]+"\n", name)
			named++
		}
	}
	require.Equal(t, 6, named)
}

// TestPackRefuses: a folder without a program, a program that says nothing of itself, and a release that lacks a system
// are refused.
func TestPackRefuses(t *testing.T) {
	none := tree(t, "plan9-amd64/notes")
	require.ErrorContains(t, run(none, "1.2.3", time.Unix(1e9, 0), parts), "plan9-amd64: there is no program in it")
	require.ErrorContains(t, run(tree(t), "1.2.3", time.Unix(1e9, 0), buildinfo.ReadFile), "darwin-amd64: ")
	less := tree(t)
	require.NoError(t, os.RemoveAll(filepath.Join(less, "windows-arm64")))
	require.ErrorContains(t, run(less, "1.2.3", time.Unix(1e9, 0), parts),
		"sluice-1.2.3-windows-arm64.zip: is named by a manifest, but is not in the release")
}

// TestPack: each system has its files, equal trees give equal bytes, and the checksums hold.
func TestPack(t *testing.T) {
	one, two := tree(t), tree(t)
	require.NoError(t, run(one, "1.2.3", time.Unix(1e9, 0), parts))
	require.NoError(t, run(two, "1.2.3", time.Unix(1e9, 0), parts))
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
	require.Equal(t, []string{"install.sh", "sluice-1.2.3-darwin-amd64.cdx.json", "sluice-1.2.3-darwin-amd64.tar.gz",
		"sluice-1.2.3-darwin-arm64.cdx.json", "sluice-1.2.3-darwin-arm64.tar.gz", "sluice-1.2.3-linux-amd64.cdx.json",
		"sluice-1.2.3-linux-amd64.image.tar", "sluice-1.2.3-linux-amd64.rpm", "sluice-1.2.3-linux-amd64.tar.gz",
		"sluice-1.2.3-linux-arm64.cdx.json", "sluice-1.2.3-linux-arm64.image.tar", "sluice-1.2.3-linux-arm64.rpm",
		"sluice-1.2.3-linux-arm64.tar.gz",
		"sluice-1.2.3-windows-amd64.cdx.json", "sluice-1.2.3-windows-amd64.zip", "sluice-1.2.3-windows-arm64.cdx.json",
		"sluice-1.2.3-windows-arm64.zip", "sluice-ai.sluice.installer.yaml", "sluice-ai.sluice.locale.en-US.yaml",
		"sluice-ai.sluice.yaml", "sluice.rb", "sluice_1.2.3_amd64.deb", "sluice_1.2.3_arm64.deb"}, names)
	manifestsName(t, one, string(sums))
	modes := modesIn(t, filepath.Join(one, "sluice-1.2.3-linux-amd64.tar.gz"))
	require.EqualValues(t, 0o755, modes["sluice-1.2.3-linux-amd64/sluice"])
	require.EqualValues(t, 0o644, modes["sluice-1.2.3-linux-amd64/LICENSE"])
	require.ErrorContains(t, run(tree(t, "all/news.txt"), "1.2.3", time.Unix(1e9, 0), parts), "news.txt has no place in a package")
	require.ErrorContains(t, run(tree(t), "v1", time.Unix(1e9, 0), parts), "is no version of a package")
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
