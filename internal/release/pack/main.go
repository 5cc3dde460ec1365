// Command pack makes the files of a release of programs that were built: `make release` calls it.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/release"
)

func main() {
	version := flag.String("version", "", "the release's version, such as 1.2.3")
	at := flag.Int64("time", 0, "seconds since 1970 that all files are of")
	dir := flag.String("dir", "dist/release", "folder with a folder OS-ARCH for each system, and one named all")
	flag.Parse()
	if err := run(*dir, *version, time.Unix(*at, 0), buildinfo.ReadFile); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// run packs each system's folder with what is for all, and writes what programs are made of, by what Go has written
// into them, the manifests of package managers, and the checksums.
func run(dir, version string, at time.Time, parts func(program string) (*debug.BuildInfo, error)) error {
	all, err := read(filepath.Join(dir, "all"))
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	made := map[string][]byte{}
	for _, e := range entries {
		system, arch, ok := strings.Cut(e.Name(), "-")
		if !ok || !e.IsDir() {
			continue
		}
		own, err := read(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if err := packed(made, version, system, arch, append(own, all...), at); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		i := slices.IndexFunc(own, func(f release.File) bool { return f.Mode == 0o755 })
		if i < 0 {
			return fmt.Errorf("%s: there is no program in it: want sluice, or sluice.exe", e.Name())
		}
		out := new(bytes.Buffer)
		info, err := parts(filepath.Join(dir, e.Name(), own[i].Path))
		if err == nil {
			err = release.SBOM(out, version, info, at)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
		made[fmt.Sprintf("sluice-%s-%s.cdx.json", version, e.Name())] = out.Bytes()
	}
	texts, err := release.Manifests(version, func(name string) (string, bool) {
		data, ok := made[name]
		return fmt.Sprintf("%x", sha256.Sum256(data)), ok
	})
	if err != nil {
		return err
	}
	maps.Copy(made, texts)
	return write(dir, made)
}

// read reads the files of a folder. The program may be executed.
func read(dir string) (files []release.File, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		f := release.File{Path: e.Name(), Data: data, Mode: 0o644}
		if e.Name() == "sluice" || e.Name() == "sluice.exe" {
			f.Mode = 0o755
		}
		files = append(files, f)
	}
	return files, nil
}

// placed says where packages have the files of a release.
var placed = map[string]string{
	"sluice": "usr/bin/sluice", "sluice.1": "usr/share/man/man1/sluice.1",
	"sluice.bash": "usr/share/bash-completion/completions/sluice",
	"sluice.zsh":  "usr/share/zsh/vendor-completions/_sluice",
	"sluice.fish": "usr/share/fish/vendor_completions.d/sluice.fish",
	"LICENSE":     "usr/share/doc/sluice/copyright", "README.md": "usr/share/doc/sluice/README.md",
	"CHANGELOG.md": "usr/share/doc/sluice/CHANGELOG.md",
}

// packed adds the archives of a system.
func packed(made map[string][]byte, version, system, arch string, files []release.File, at time.Time) error {
	name, how := fmt.Sprintf("sluice-%s-%s-%s", version, system, arch), release.How{At: at}
	add := func(name string, pack func(w io.Writer) error) error {
		out := new(bytes.Buffer)
		err := pack(out)
		made[name] = out.Bytes()
		return err
	}
	if system == "windows" {
		return add(name+".zip", func(w io.Writer) error { return release.Zip(w, name+"/", files, how) })
	}
	if err := add(name+".tar.gz", func(w io.Writer) error { return release.Tar(w, name+"/", files, how) }); err != nil || system != "linux" {
		return err
	}
	var program []byte
	installed := slices.Clone(files)
	for i := range installed {
		to, ok := placed[installed[i].Path]
		if !ok {
			return fmt.Errorf("%s has no place in a package: add it to placed", installed[i].Path)
		}
		if installed[i].Path == "sluice" {
			program = installed[i].Data
		}
		installed[i].Path = to
	}
	about := release.Package{Name: "sluice", Version: version, Arch: arch, Maintainer: "sluice <noreply@sluice.invalid>",
		Homepage: "https://github.com/sluice-ai/sluice", Summary: "runs large language models on this machine", License: "Apache-2.0",
		Description: "One program that answers, serves and measures, with a small model in it. It needs nothing else."}
	return errors.Join(
		add(fmt.Sprintf("sluice_%s_%s.deb", version, arch), func(w io.Writer) error { return release.Deb(w, &about, installed, how) }),
		add(name+".rpm", func(w io.Writer) error { return release.RPM(w, &about, installed, how) }),
		add(name+".image.tar", func(w io.Writer) error { return release.Image(w, version, arch, program, how) }))
}

// write writes what was made, and its checksums.
func write(dir string, made map[string][]byte) error {
	var sums strings.Builder
	names := make([]string, 0, len(made))
	for name := range made {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(made[name]), name)
		if err := os.WriteFile(filepath.Join(dir, name), made[name], 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
