// Gen compiles the shaders beside this folder, and writes what Go needs of them: the modules, an enum, and a structure
// for the push constants and the specialisation constants of each source, read from the modules themselves.
//
// A module whose sources have not changed is not compiled again: modules.sum has the hashes of both. So the compiler,
// named in compiler.go, is needed only by whoever changes a shader.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const sources = ".." // the folder of the shaders, seen from this one

// sumFile lists for each module the hash of its sources and of its code.
const sumFile = "modules.sum"

// unit is one module: a source and the macros it is compiled with.
type unit struct {
	name, source string
	flags        []string
	text         string // of the source and all that it includes
	code         []byte
}

func main() {
	out := flag.String("o", "", "folder to write to")
	flag.Parse()
	if *out == "" {
		fail(fmt.Errorf("want -o FOLDER"))
	}
	units, err := find()
	if err == nil {
		err = compileAll(units)
	}
	if err == nil {
		err = write(*out, units)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "shaders:", err)
	os.Exit(1)
}

// variant is how a source lists its modules: // variant: NAME FLAGS
var variant = regexp.MustCompile(`(?m)^// variant: (\S+) ?(.*)$`)

// find lists all modules, by name.
func find() ([]*unit, error) {
	files, err := filepath.Glob(filepath.Join(sources, "*.comp"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no shaders in %s: run it in its own folder (%v)", sources, err)
	}
	var units []*unit
	for _, f := range files {
		text, err := expand(f)
		if err != nil {
			return nil, err
		}
		found := variant.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: lists no variant", f)
		}
		for _, m := range found {
			source := strings.TrimSuffix(filepath.Base(f), ".comp")
			units = append(units, &unit{name: m[1], source: source, flags: strings.Fields(m[2]), text: text})
		}
	}
	slices.SortFunc(units, func(a, b *unit) int { return strings.Compare(a.name, b.name) })
	return units, nil
}

var include = regexp.MustCompile(`(?m)^#include "(.*)"$`)

// expand is a file's text with what it includes.
func expand(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	all.Write(text)
	for _, m := range include.FindAllStringSubmatch(string(text), -1) {
		inner, err := expand(filepath.Join(sources, m[1]))
		if err != nil {
			return "", err
		}
		all.WriteString(inner)
	}
	return all.String(), nil
}

func hash(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\x00"))))[:32]
}

func (u *unit) sourceHash() string { return hash(append(u.flags, compilerVersion, u.text)...) }

// compileAll sets the code of all modules.
func compileAll(units []*unit) error {
	sums := map[string][2]string{}
	if text, err := os.ReadFile(filepath.Join(sources, sumFile)); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 {
				sums[f[0]] = [2]string{f[1], f[2]}
			}
		}
	}
	for _, u := range units {
		code, err := unpack(filepath.Join(sources, u.file()))
		if err == nil && sums[u.name] == [2]string{u.sourceHash(), hash(string(code))} {
			u.code = code
			continue
		}
		if u.code, err = compile(u); err != nil {
			return err
		}
	}
	return nil
}

// write makes all files.
func write(out string, units []*unit) error {
	var sums bytes.Buffer
	for _, u := range units {
		fmt.Fprintln(&sums, u.name, u.sourceHash(), hash(string(u.code)))
		if err := pack(filepath.Join(out, u.file()), u.code); err != nil {
			return err
		}
	}
	text, err := generate(units)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, sumFile), sums.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "modules_gen.go"), text, 0o644)
}
