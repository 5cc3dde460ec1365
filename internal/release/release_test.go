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
		Summary: "answers", Description: "One line,\nand another.", License: "Apache-2.0"}
)

// formats pack the same files each in its way.
var formats = map[string]func(w io.Writer, files []File) error{
	"tar": func(w io.Writer, files []File) error { return Tar(w, "top/", files, How{At: day}) },
	"zip": func(w io.Writer, files []File) error { return Zip(w, "top/", files, How{At: day}) },
	"deb": func(w io.Writer, files []File) error { return Deb(w, &about, files, How{At: day}) },
	"rpm": func(w io.Writer, files []File) error { return RPM(w, &about, files, How{At: day}) },
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
	require.NoError(t, Tar(&packed, "top/", files, How{At: day}))
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
	require.NoError(t, Zip(&packed, "top/", files, How{At: day}))
	z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	require.NoError(t, err)
	require.Equal(t, "top/usr/bin/sluice", z.File[0].Name)
	require.EqualValues(t, 0o755, z.File[0].Mode().Perm())
	require.True(t, z.File[0].Modified.Equal(day))
}

// TestPackagesRefuse: a version that dpkg or rpm would not take is refused, and a processor that rpm has no name for.
func TestPackagesRefuse(t *testing.T) {
	for _, version := range []string{"", "v1", "1.2-3", "1 2", "1/2"} {
		p := about
		p.Version = version
		require.ErrorContains(t, Deb(io.Discard, &p, files, How{At: day}), "is no version of a package", version)
		require.ErrorContains(t, RPM(io.Discard, &p, files, How{At: day}), "is no version of a package", version)
	}
	p := about
	p.Arch = "riscv64"
	require.ErrorContains(t, RPM(io.Discard, &p, files, How{At: day}), `"riscv64" is no processor`)
}

// TestDebIsDebians: dpkg reads a package, and finds its files in place.
func TestDebIsDebians(t *testing.T) {
	dpkg := testref.Tool(t, "dpkg", "dpkg-deb")
	path, root := filepath.Join(t.TempDir(), "a.deb"), t.TempDir()
	var made bytes.Buffer
	require.NoError(t, Deb(&made, &about, files, How{At: day}))
	require.NoError(t, os.WriteFile(path, made.Bytes(), 0o600))
	said, err := exec.Command(dpkg, "--field", path).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "Package: sluice\nVersion: 1.2.3\nArchitecture: amd64\n")
	require.Contains(t, string(said), "Description: answers\n One line,\n and another.\n")
	for n := range 4 { // members of odd and even sizes
		var odd bytes.Buffer
		require.NoError(t, Deb(&odd, &about, []File{{"x", bytes.Repeat([]byte("ab!"), n*n), 0o644}}, How{At: day}))
		c := exec.Command(dpkg, "--contents", "/dev/stdin")
		c.Stdin = &odd
		said, err := c.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	if os.Getuid() != 0 {
		testref.Missing(t, "root", "dpkg and rpm install for root alone")
	}
	for _, name := range []string{"info", "updates", "status"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", name), 0o755))
	}
	require.NoError(t, os.Remove(filepath.Join(root, "var/lib/dpkg/status")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600))
	whole := testref.Tool(t, "dpkg", "dpkg")
	said, err = exec.Command(whole, "--root="+root, "--force-architecture", "--install", path).CombinedOutput()
	require.NoError(t, err, "%s", said)
	installed(t, root)
	said, err = exec.Command(whole, "--root="+root, "--verify", "sluice").CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Empty(t, string(said))
}

// installed: the files of a package are in place, with their modes.
func installed(t *testing.T, root string) {
	t.Helper()
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(root, f.Path))
		require.NoError(t, err)
		require.Equal(t, f.Data, data)
		info, err := os.Stat(filepath.Join(root, f.Path))
		require.NoError(t, err)
		require.Equal(t, f.Mode, info.Mode().Perm())
		require.True(t, info.ModTime().Equal(day))
	}
}

// TestRPMIsRPMs: rpm reads a package, installs it for the same files, and finds them unchanged; a byte of another is
// seen.
func TestRPMIsRPMs(t *testing.T) {
	rpm := testref.Tool(t, "rpm", "rpm")
	path, root := filepath.Join(t.TempDir(), "a.rpm"), t.TempDir()
	var made bytes.Buffer
	require.NoError(t, RPM(&made, &about, files, How{At: day}))
	require.NoError(t, os.WriteFile(path, made.Bytes(), 0o600))
	run := func(words ...string) string {
		said, err := exec.Command(rpm, append([]string{"--root", root}, words...)...).CombinedOutput()
		require.NoError(t, err, "%s: %s", words, said)
		return string(said)
	}
	require.Contains(t, run("-qip", path), "Version     : 1.2.3\nRelease     : 1\nArchitecture: x86_64\n")
	require.Contains(t, run("-K", path), "digests OK")
	require.Empty(t, run("-qp", "--requires", path))
	if os.Getuid() != 0 {
		testref.Missing(t, "root", "dpkg and rpm install for root alone")
	}
	run("--install", "--ignorearch", path)
	installed(t, root)
	require.Equal(t, "sluice-1.2.3-1.x86_64\n", run("-q", "sluice"))
	require.Empty(t, run("--verify", "sluice"))
	changed := bytes.Clone(made.Bytes())
	changed[len(changed)-40] ^= 1
	require.NoError(t, os.WriteFile(path, changed, 0o600))
	require.Error(t, exec.Command(rpm, "-K", path).Run())
}
