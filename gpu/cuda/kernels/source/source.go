// Package source finds the kernels' sources: gen compiles them, tests compile them for the processor (gpu/cuda/fake),
// and compare what was compiled with them.
package source

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Compiler is the one that all modules are compiled with, by its first number. Debian has it as clang-19.
const Compiler = "19"

// flags are those of the compiler, without the card and the macros of a module.
var flags = []string{"-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-feature=+ptx80", "-O3",
	"-ffp-contract=off", "-std=c++17", "-Wall", "-Werror", "-Wno-unused-function", "-S"}

// hopper is the macro of modules that only cards of compute capability 9.0 can run.
const hopper = "-DSM_90A"

// Unit is one module: a source and the macros that it is compiled with.
type Unit struct {
	Name, File string
	Macros     []string
	Text       string // of the source and all that it includes
}

// Card is the least that a card must be to run the module, as compilers name it.
func (u *Unit) Card() string {
	if slices.Contains(u.Macros, hopper) {
		return "sm_90a"
	}
	return "sm_80"
}

// Flags are those of the compiler.
func (u *Unit) Flags() []string {
	return append(slices.Concat(flags, u.Macros), "--cuda-gpu-arch="+u.Card())
}

// Hash is of all that a module is made of.
func (u *Unit) Hash() string { return Hash(append(u.Flags(), Compiler, u.Text)...) }

// Hash is a short one of several texts.
func Hash(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\x00"))))[:32]
}

// variant is how a source lists its modules: // variant: NAME MACROS
var variant = regexp.MustCompile(`(?m)^// variant: (\S+) ?(.*)$`)

// Find lists the modules of a folder, by name.
func Find(folder string) ([]*Unit, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.cu"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no kernels in %s: %w", folder, cmp.Or(err, fs.ErrNotExist))
	}
	var units []*Unit
	for _, f := range files {
		text, err := expand(f, map[string]bool{})
		if err != nil {
			return nil, err
		}
		found := variant.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: lists no variant", f)
		}
		for _, m := range found {
			units = append(units, &Unit{Name: m[1], File: f, Macros: strings.Fields(m[2]), Text: text})
		}
	}
	slices.SortFunc(units, func(a, b *Unit) int { return strings.Compare(a.Name, b.Name) })
	return units, nil
}

var include = regexp.MustCompile(`(?m)^#include "(.*)"$`)

// expand is a file's text with what it includes, each file once.
func expand(file string, seen map[string]bool) (string, error) {
	if seen[file] {
		return "", nil
	}
	seen[file] = true
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	all.Write(text)
	for _, m := range include.FindAllStringSubmatch(string(text), -1) {
		inner, err := expand(filepath.Join(filepath.Dir(file), m[1]), seen)
		if err != nil {
			return "", err
		}
		all.WriteString(inner)
	}
	return all.String(), nil
}
