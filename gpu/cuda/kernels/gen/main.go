// Gen compiles the kernels beside this folder to PTX, packed, one file a module. The first lines of each say which
// module it is and what it was made of: one beside the sources, which have not changed since, is written as it is. So
// clang is needed only by whoever changes a kernel.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/sluice-ai/sluice/gpu/cuda/kernels"
	"github.com/sluice-ai/sluice/gpu/cuda/kernels/source"
)

const (
	sources = ".." // the folder of the kernels, seen from this one
	packed  = ".ptx.zst"
)

func main() {
	out := flag.String("o", "", "folder to write to")
	flag.Parse()
	if err := generate(*out); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func generate(out string) error {
	if out == "" {
		return fmt.Errorf("want -o FOLDER")
	}
	units, err := source.Find(sources)
	if err != nil {
		return err
	}
	wanted, texts := map[string]bool{}, map[string]string{}
	for _, u := range units {
		text, err := unpack(u.Name)
		if err != nil || !strings.HasPrefix(text, header(u)) {
			if text, err = compile(u); err != nil {
				return err
			}
			text = header(u) + text
		}
		texts[u.Name] = text
	}
	for name, text := range texts {
		file := filepath.Join(out, name+packed)
		wanted[file] = true
		if err := pack(file, text, texts[kernels.Base(name)]); err != nil {
			return err
		}
	}
	all, err := filepath.Glob(filepath.Join(out, "*.ptx.zst"))
	if err != nil {
		return err
	}
	for _, file := range all {
		if !wanted[file] {
			err = os.Remove(file)
		}
	}
	return err
}

// header begins a module's text.
func header(u *source.Unit) string { return "// module " + u.Name + "\n// sources " + u.Hash() + "\n" }

var (
	comment = regexp.MustCompile(`(?m)^\s*//.*\n|[ \t]+//.*$`)
	space   = regexp.MustCompile(`(?m)^[ \t]+|[ \t]+$`)
	empty   = regexp.MustCompile(`\n\n+`)
)

// compile runs clang++, from $CLANG or PATH, and leaves out what is for people.
func compile(u *source.Unit) (string, error) {
	program := os.Getenv("CLANG")
	if program == "" {
		program = "clang++-" + source.Compiler
	}
	version, err := exec.Command(program, "--version").Output()
	if err != nil || !strings.Contains(string(version), "version "+source.Compiler+".") {
		first, _, _ := strings.Cut(string(version), "\n")
		return "", fmt.Errorf("%s has changed and must be compiled by clang %s, but %q says %q (%v): install Debian's clang-%s, or "+
			"set CLANG to such a clang++, then run make gen", u.Name, source.Compiler, program, first, err, source.Compiler)
	}
	c := exec.Command(program, append(u.Flags(), "-o", "-", u.File)...)
	var said bytes.Buffer
	c.Stderr = &said
	text, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", u.Name, err, said.String())
	}
	code := space.ReplaceAllString(comment.ReplaceAllString(string(text), ""), "")
	return strings.TrimLeft(empty.ReplaceAllString(code, "\n"), "\n"), nil
}

// pack writes a module, unless it is what the file already holds. Of one that has a base, what differs is written.
func pack(file, text, base string) error {
	old, err := os.ReadFile(file)
	if base == "" && err == nil {
		if held, err := kernels.Unpack(old, ""); err == nil && held == text {
			return nil
		}
	}
	options := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1)}
	if base != "" {
		options = append(options, zstd.WithEncoderDictRaw(1, []byte(base)))
	}
	e, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return err
	}
	defer e.Close()
	b := e.EncodeAll([]byte(text), nil)
	if bytes.Equal(b, old) {
		return nil
	}
	return os.WriteFile(file, b, 0o644)
}

// unpack reads a module beside the sources.
func unpack(name string) (text string, err error) {
	b, err := os.ReadFile(filepath.Join(sources, name+packed))
	if err != nil {
		return "", err
	}
	base := kernels.Base(name)
	if base != "" {
		if base, err = unpack(base); err != nil {
			return "", err
		}
	}
	return kernels.Unpack(b, base)
}
