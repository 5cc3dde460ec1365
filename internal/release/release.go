// Package release packs files as people install them: tar.gz, zip, packages of Debian's and of rpm's, and images of
// containers.
//
// Equal files give equal bytes, whoever packs them and when: times are one that the caller gives, owners are root, the
// order is that of the names.
package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// File is a file of an archive.
type File struct {
	Path string // with slashes, without one in front
	Data []byte
	Mode fs.FileMode
}

// How is how files are packed.
type How struct {
	At    time.Time // of all files
	Quick bool      // quickly, not small: tests pack large programs
}

// level is what files are compressed with.
func (h How) level() int {
	if h.Quick {
		return flate.BestSpeed
	}
	return flate.BestCompression
}

// Sorted orders files by name, and refuses those that an archive cannot have, or has twice.
func Sorted(files []File) ([]File, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for i := range files {
		if !fs.ValidPath(files[i].Path) || files[i].Path == "." {
			return nil, fmt.Errorf("%q is no path in an archive: want one relative to its top, with slashes", files[i].Path)
		}
		if i > 0 && files[i].Path == files[i-1].Path {
			return nil, fmt.Errorf("%s is there twice", files[i].Path)
		}
	}
	return files, nil
}

// Tar writes a tar.gz. Names begin with prefix; folders come before what is in them.
func Tar(w io.Writer, prefix string, files []File, how How) error {
	packed, err := gzip.NewWriterLevel(w, how.level())
	if err != nil {
		return err
	}
	t := tar.NewWriter(packed)
	if err := entries(t, prefix, files, how.At); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return packed.Close()
}

// entries adds files, and the folders that they are in, to a tar.
func entries(t *tar.Writer, prefix string, files []File, at time.Time) error {
	files, err := Sorted(files)
	if err != nil {
		return err
	}
	made := map[string]bool{}
	for _, f := range files {
		for _, folder := range foldersOf(prefix + f.Path) {
			if made[folder] {
				continue
			}
			made[folder] = true
			if err := t.WriteHeader(header(tar.TypeDir, folder+"/", 0o755, 0, at)); err != nil {
				return err
			}
		}
		if err := t.WriteHeader(header(tar.TypeReg, prefix+f.Path, f.Mode, len(f.Data), at)); err != nil {
			return err
		}
		if _, err := t.Write(f.Data); err != nil {
			return err
		}
	}
	return nil
}

func header(kind byte, name string, mode fs.FileMode, size int, at time.Time) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: int64(mode.Perm()), Size: int64(size), ModTime: at.UTC(),
		Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
}

// foldersOf lists the folders above a path, the topmost first.
func foldersOf(name string) (list []string) {
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		list = append(list, dir)
	}
	slices.Reverse(list)
	return list
}

// Zip writes a zip. Names begin with prefix.
func Zip(w io.Writer, prefix string, files []File, how How) error {
	files, err := Sorted(files)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, how.level()) })
	for _, f := range files {
		h := &zip.FileHeader{Name: prefix + f.Path, Method: zip.Deflate, Modified: how.At.UTC()}
		h.SetMode(f.Mode)
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.Data); err != nil {
			return err
		}
	}
	return z.Close()
}

// Package is what those that install packages are told of one.
type Package struct {
	Name, Version, Arch, Maintainer, Homepage string // Arch as Go and Debian name processors
	Summary, Description, License             string
}

// check refuses a version that one of the formats does not take.
func (p *Package) check() error {
	if p.Version == "" || !strings.ContainsAny(p.Version[:1], "0123456789") || strings.ContainsAny(p.Version, " -\n_/") {
		return fmt.Errorf("%q is no version of a package: want one that begins with a digit, such as 1.2.3, without - and _",
			p.Version)
	}
	return nil
}

// Deb writes a package of Debian's format 2.0: an ar archive of its version, of what is told of the package, and of its
// files.
func Deb(w io.Writer, p *Package, files []File, how How) error {
	if err := p.check(); err != nil {
		return err
	}
	var data, control, sums bytes.Buffer
	if err := Tar(&data, "./", files, how); err != nil {
		return err
	}
	size := 0
	files, err := Sorted(files)
	if err != nil {
		return err
	}
	for _, f := range files {
		size += (len(f.Data) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.Data), f.Path) // the format has no other
	}
	about := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nSection: science\n"+
		"Priority: optional\nHomepage: %s\nDescription: %s\n %s\n", p.Name, p.Version, p.Arch, p.Maintainer, size, p.Homepage,
		p.Summary, strings.ReplaceAll(p.Description, "\n", "\n "))
	told := []File{{Path: "control", Data: []byte(about), Mode: 0o644}, {Path: "md5sums", Data: sums.Bytes(), Mode: 0o644}}
	if err := Tar(&control, "./", told, how); err != nil {
		return err
	}
	out := bytes.NewBufferString("!<arch>\n")
	member(out, "debian-binary", []byte("2.0\n"), how.At)
	member(out, "control.tar.gz", control.Bytes(), how.At)
	member(out, "data.tar.gz", data.Bytes(), how.At)
	_, err = w.Write(out.Bytes())
	return err
}

// member adds a file to an ar archive.
func member(out *bytes.Buffer, name string, data []byte, at time.Time) {
	fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, at.Unix(), 0, 0, "100644", len(data))
	out.Write(data)
	if len(data)%2 == 1 {
		out.WriteByte('\n')
	}
}
