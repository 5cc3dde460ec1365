package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

var (
	day   = time.Date(2026, 11, 27, 12, 0, 0, 0, time.FixedZone("", 3600))
	files = []File{{"usr/bin/sluice", []byte("program"), 0o755}, {"usr/share/doc/sluice/copyright", []byte("odd"), 0o644}}
	about = Package{Name: "sluice", Version: "1.2.3", Arch: "amd64", Maintainer: "A <a@b.invalid>", Homepage: "https://b.invalid",
		Summary: "answers", Description: "One line,\nand another."}
)

// formats pack the same files each in its way.
var formats = map[string]func(w io.Writer, files []File) error{
	"tar": func(w io.Writer, files []File) error { return Tar(w, "top/", files, day) },
	"zip": func(w io.Writer, files []File) error { return Zip(w, "top/", files, day) },
	"deb": func(w io.Writer, files []File) error { return Deb(w, &about, files, day) },
}

// TestSameBytes: neither the order of the files nor a time zone changes a byte; faulty names are refused.
func TestSameBytes(t *testing.T) {
	for name, pack := range formats {
		var one, two bytes.Buffer
		require.NoError(t, pack(&one, files))
		turned := slices.Clone(files)
		slices.Reverse(turned)
		here := day
		day = day.UTC()
		require.NoError(t, pack(&two, turned))
		day = here
		require.Equal(t, one.Bytes(), two.Bytes(), name)
		for _, path := range []string{"/etc/passwd", "../x", "", ".", "a/../b", "usr/bin/sluice"} {
			require.Error(t, pack(io.Discard, append(slices.Clone(files), File{Path: path})), "%s: %s", name, path)
		}
	}
}

// TestArchivesHoldFiles: contents, modes, owners and times come out of archives as they should.
func TestArchivesHoldFiles(t *testing.T) {
	var packed bytes.Buffer
	require.NoError(t, Tar(&packed, "top/", files, day))
	plain, err := gzip.NewReader(&packed)
	require.NoError(t, err)
	var names []string
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
		require.True(t, h.ModTime.Equal(day))
		require.Zero(t, h.Uid+h.Gid)
		if h.Name == "top/usr/bin/sluice" {
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, "program", string(data))
			require.EqualValues(t, 0o755, h.Mode)
		}
	}
	require.Equal(t, []string{"top/", "top/usr/", "top/usr/bin/", "top/usr/bin/sluice", "top/usr/share/", "top/usr/share/doc/",
		"top/usr/share/doc/sluice/", "top/usr/share/doc/sluice/copyright"}, names)

	packed.Reset()
	require.NoError(t, Zip(&packed, "top/", files, day))
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	require.NoError(t, err)
	require.Equal(t, "top/usr/bin/sluice", z.File[0].Name)
	require.EqualValues(t, 0o755, z.File[0].Mode().Perm())
	require.True(t, z.File[0].Modified.Equal(day))
}

// TestDebRefuses: a version that dpkg would not take is refused.
func TestDebRefuses(t *testing.T) {
	for _, version := range []string{"", "v1", "1.2-3", "1 2", "1/2"} {
		p := about
		p.Version = version
		require.ErrorContains(t, Deb(io.Discard, &p, files, day), "is no version of a package", version)
	}
}

// TestDebIsDebians: dpkg reads a package, and finds its files in place.
func TestDebIsDebians(t *testing.T) {
	dpkg := testref.Tool(t, "dpkg", "dpkg-deb")
	path, root := filepath.Join(t.TempDir(), "a.deb"), t.TempDir()
	var made bytes.Buffer
	require.NoError(t, Deb(&made, &about, files, day))
	require.NoError(t, os.WriteFile(path, made.Bytes(), 0o600))
	said, err := exec.Command(dpkg, "--field", path).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "Package: sluice\nVersion: 1.2.3\nArchitecture: amd64\n")
	require.Contains(t, string(said), "Description: answers\n One line,\n and another.\n")
	for n := range 4 { // members of odd and even sizes
		var odd bytes.Buffer
		require.NoError(t, Deb(&odd, &about, []File{{"x", bytes.Repeat([]byte("ab!"), n*n), 0o644}}, day))
		c := exec.Command(dpkg, "--contents", "/dev/stdin")
		c.Stdin = &odd
		said, err := c.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	said, err = exec.Command(dpkg, "--extract", path, root).CombinedOutput()
	require.NoError(t, err, "%s", said)
	info, err := os.Stat(filepath.Join(root, "usr/bin/sluice"))
	require.NoError(t, err)
	require.EqualValues(t, 0o755, info.Mode().Perm())
}
