package lint

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ordered are folders whose files stand in an order: what a file uses is below it, so that who reads from the ground up
// meets each idea once, and before it is needed. No two files use each other, not even by way of others.
var ordered = []string{"actors", "actors/run", "actors/tiers"}

func TestFilesAreOrdered(t *testing.T) {
	folders := map[string][]*source{}
	fset := token.NewFileSet()
	for name, text := range texts(t, ".go") {
		if dir := path.Dir(name); slices.Contains(ordered, dir) && !strings.HasSuffix(name, "_test.go") {
			folders[dir] = append(folders[dir], parseInto(t, fset, name, text))
		}
	}
	require.Len(t, folders, len(ordered))
	for dir, files := range folders {
		uses := usesOf(files)
		if ring := circle(uses); ring != nil {
			t.Errorf("%s: its files use each other in a circle: %s: move what they share below them", dir,
				strings.Join(ring, " → "))
		}
		for _, s := range files {
			if s.path == dir+"/doc.go" {
				for _, fault := range misplaced(rowsOf(s.ast.Doc.Text()), uses) {
					t.Errorf("%s: %s", s.path, fault)
				}
			}
		}
	}
}

// usesOf says of each file of a package in which others the things are declared that it names. Other packages are not
// looked into: what is found by way of their types does not count.
func usesOf(files []*source) map[string]map[string]bool {
	var all []*ast.File
	for _, s := range files {
		all = append(all, s.ast)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	quiet := types.Config{Importer: nobody{}, Error: func(error) {}}
	pkg, _ := quiet.Check(files[0].dir(), files[0].fset, all, info)
	file := func(p token.Pos) string { return path.Base(files[0].fset.Position(p).Filename) }
	uses := map[string]map[string]bool{}
	for id, object := range info.Uses {
		from, to := file(id.Pos()), file(object.Pos())
		if object.Pkg() != pkg || !object.Pos().IsValid() || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	return uses
}

// nobody imports nothing.
type nobody struct{}

func (nobody) Import(string) (*types.Package, error) { return nil, errors.New("not looked into") }

// rowsOf are the files that a package's comment lists from the ground up: the names, without .go, at the start of its
// indented lines.
func rowsOf(doc string) (names []string) {
	for line := range strings.Lines(doc) {
		if row, ok := strings.CutPrefix(line, "\t"); ok {
			files, _, _ := strings.Cut(row, "  ")
			for name := range strings.SplitSeq(files, ", ") {
				names = append(names, strings.TrimSpace(name)+".go")
			}
		}
	}
	return names
}

// misplaced says what is wrong with such a list, if there is one.
func misplaced(list []string, uses map[string]map[string]bool) (faults []string) {
	if len(list) == 0 {
		return nil
	}
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		at := slices.Index(list, from)
		if at < 0 {
			faults = append(faults, from+" is missing in the list of files")
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(uses[from])) {
			if slices.Index(list, to) > at {
				faults = append(faults, from+" stands before "+to+", which it uses")
			}
		}
	}
	return faults
}

// circle finds files that use each other, the first one again at the end; nil if there are none.
func circle(uses map[string]map[string]bool) []string {
	done := map[string]bool{}
	var at []string
	var visit func(string) []string
	visit = func(f string) []string {
		if i := slices.Index(at, f); i >= 0 {
			return append(slices.Clone(at[i:]), f)
		}
		if done[f] {
			return nil
		}
		done[f] = true
		at = append(at, f)
		for _, next := range slices.Sorted(maps.Keys(uses[f])) {
			if ring := visit(next); ring != nil {
				return ring
			}
		}
		at = at[:len(at)-1]
		return nil
	}
	for _, f := range slices.Sorted(maps.Keys(uses)) {
		if ring := visit(f); ring != nil {
			return ring
		}
	}
	return nil
}

func TestFilesAreOrderedSeesFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		text map[string]string
		want []string
	}{
		{"a line", map[string]string{"a": "func f() { g() }", "b": "func g() { h() }", "c": "func h() {}"}, nil},
		{"both ways", map[string]string{"a": "type A struct{ b *B }", "b": "type B struct{ a *A }"}, []string{"a.go", "b.go", "a.go"}},
		{"a method's", map[string]string{"a": "type A struct{}\nfunc (a A) f() { a.g() }", "b": "func (a A) g() {}"},
			[]string{"a.go", "b.go", "a.go"}},
		{"a field's", map[string]string{"a": "type A struct{ n int }\nvar _ = h", "b": "import \"x\"\nvar h = x.F\nfunc g(a A) int { return a.n }"},
			[]string{"a.go", "b.go", "a.go"}},
		{"three", map[string]string{"a": "func f() { g() }", "b": "func g() { h() }", "c": "func h() { f() }"},
			[]string{"a.go", "b.go", "c.go", "a.go"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fset := token.NewFileSet()
			var files []*source
			for _, name := range slices.Sorted(maps.Keys(c.text)) {
				files = append(files, parseInto(t, fset, "p/"+name+".go", "package p\n"+c.text[name]))
			}
			require.Equal(t, c.want, circle(usesOf(files)))
		})
	}
}

func TestListOfFilesSeesFaults(t *testing.T) {
	uses := map[string]map[string]bool{"b.go": {"a.go": true}, "c.go": {"a.go": true, "b.go": true}}
	require.Empty(t, misplaced(rowsOf("Package p does it.\n"), uses))
	require.Empty(t, misplaced(rowsOf("Package p does it.\n\n\ta, b   first\n\tc      then\n"), uses))
	require.Equal(t, []string{"b.go stands before a.go, which it uses"}, misplaced(rowsOf("\tb, a   first\n\tc      then\n"), uses))
	require.Equal(t, []string{"c.go is missing in the list of files"}, misplaced(rowsOf("\ta, b   first\n"), uses))
}
