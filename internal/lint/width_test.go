package lint

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// whyWide begins the line of a struct's comment that says why it has more fields than others may.
const whyWide = "Wide: "

func TestStructsAreNarrow(t *testing.T) { each(t, wide) }

// wide finds structs of more than 15 fields without a written reason. What another struct has that is embedded is
// counted there.
func wide(s *source) (faults []string) {
	const limit = 15
	if s.generated() || s.test() {
		return nil
	}
	for _, decl := range s.ast.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok || reasoned(d.Doc) || reasoned(t.Doc) {
				continue
			}
			ast.Inspect(t.Type, func(n ast.Node) bool {
				if x, ok := n.(*ast.StructType); ok && x.Fields.NumFields() > limit {
					faults = append(faults, fmt.Sprintf(
						"%s: type %s has a struct of %d fields, want at most %d, or a line of its comment that begins with %q",
						s.at(x.Pos()), t.Name.Name, x.Fields.NumFields(), limit, whyWide))
				}
				return true
			})
		}
	}
	return faults
}

// reasoned says whether a comment says why a struct is wide.
func reasoned(doc *ast.CommentGroup) bool {
	for line := range strings.Lines(doc.Text()) {
		if why, ok := strings.CutPrefix(line, whyWide); ok && len(strings.Fields(why)) > 2 {
			return true
		}
	}
	return false
}

func TestStructsSeesFaults(t *testing.T) {
	fields := strings.Repeat("a, b, c, d int\n", 4)
	one := "package p\ntype T struct {\n" + fields + "}"
	require.Len(t, wide(parse(t, "a.go", one)), 1)
	require.Len(t, wide(parse(t, "a.go", "package p\ntype T struct {\ninner struct {\n"+fields+"}\n}")), 1)
	require.Len(t, wide(parse(t, "a.go", "package p\n\n// T is wide.\n// Wide: so.\ntype T struct {\n"+fields+"}")), 1)
	require.Empty(t, wide(parse(t, "a.go", "package p\n\n// T is it.\n// Wide: it is what the file has.\ntype T struct {\n"+fields+"}")))
	require.Empty(t, wide(parse(t, "a.go", strings.Replace(one, "a, b", "b", 1))))
}
