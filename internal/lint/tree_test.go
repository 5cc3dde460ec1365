package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/sluice-ai/sluice"

// root is the module's folder, seen from this package.
const root = "../.."

// source is one Go file of the module.
type source struct {
	path string // from the module's folder, with slashes
	text string
	ast  *ast.File
	fset *token.FileSet
}

func (s *source) dir() string     { return path.Dir(s.path) }
func (s *source) test() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) generated() bool { return ast.IsGenerated(s.ast) }

// at says where a node stands, as an editor understands it.
func (s *source) at(p token.Pos) string { return fmt.Sprintf("%s:%d", s.path, s.line(p)) }

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func parse(t *testing.T, name, text string) *source {
	t.Helper()
	return parseInto(t, token.NewFileSet(), name, text)
}

// parseInto parses a file beside others of its package.
func parseInto(t *testing.T, fset *token.FileSet, name, text string) *source {
	t.Helper()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return &source{path: name, text: text, ast: f, fset: fset}
}

// texts returns the module's files whose names end in one of the suffixes, by path. Test data, hidden
// folders and modules nested in this one are left out.
func texts(t *testing.T, suffixes ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(name, d)
		}
		for _, suffix := range suffixes {
			if strings.HasSuffix(name, suffix) {
				text, err := os.ReadFile(name)
				rel, _ := filepath.Rel(root, name)
				files[filepath.ToSlash(rel)] = string(text)
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

func skip(name string, d fs.DirEntry) error {
	if name == root {
		return nil
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || err == nil {
		return filepath.SkipDir
	}
	return nil
}

func sources(t *testing.T) []*source {
	t.Helper()
	var all []*source
	for name, text := range texts(t, ".go") {
		all = append(all, parse(t, name, text))
	}
	require.NotEmpty(t, all)
	return all
}

// each runs one rule over the whole module and shows all that it finds.
func each(t *testing.T, rule func(*source) []string) {
	t.Helper()
	for _, s := range sources(t) {
		for _, fault := range rule(s) {
			t.Error(fault)
		}
	}
}

// under says whether a folder or import path is dir or lies below it.
func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func underAny(p string, dirs []string) bool {
	for _, dir := range dirs {
		if under(p, dir) {
			return true
		}
	}
	return false
}
