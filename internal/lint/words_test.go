package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// word is a row of the glossary in docs/glossary.md.
type word struct {
	name string   // as it is written
	home string   // the package whose subject it is
	also []string // packages that declare a type of that name, too
}

// ident is a word as a type is named, in lower case.
func (w *word) ident() string { return strings.ToLower(strings.ReplaceAll(w.name, " ", "")) }

var (
	glossaryRow = regexp.MustCompile("(?m)^\\| ([a-z][a-z -]*) \\| [^|]+ \\| `([^`]+)` \\|([^|]*)\\|$")
	unusedWord  = regexp.MustCompile("`([a-z]+)`[a-zA-Z ]* \\(")
	quoted      = regexp.MustCompile("`([^`]+)`")
)

// readGlossary returns the words of docs/glossary.md, and those that are not used.
func readGlossary(t *testing.T, text string) (words []word, unused []string) {
	t.Helper()
	text, rest, found := strings.Cut(text, "\n## Words that are not used\n")
	require.True(t, found, "docs/glossary.md ends with words that are not used")
	for _, m := range glossaryRow.FindAllStringSubmatch(text, -1) {
		w := word{name: m[1], home: m[2]}
		for _, also := range quoted.FindAllStringSubmatch(m[3], -1) {
			w.also = append(w.also, also[1])
		}
		words = append(words, w)
	}
	for _, m := range unusedWord.FindAllStringSubmatch(rest, -1) {
		unused = append(unused, m[1])
	}
	return words, unused
}

// wordsIn finds what is wrong with types of a file: they have a word of the glossary, and another package's.
func wordsIn(s *source, words []word) (faults []string) {
	if s.test() {
		return nil
	}
	for _, d := range s.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, x := range g.Specs {
			x, ok := x.(*ast.TypeSpec)
			if !ok {
				continue
			}
			i := slices.IndexFunc(words, func(w word) bool { return w.ident() == strings.ToLower(x.Name.Name) })
			if i >= 0 && words[i].home != s.dir() && !slices.Contains(words[i].also, s.dir()) {
				faults = append(faults, s.at(x.Pos())+": "+x.Name.Name+" is a word of "+words[i].home+
					": name it otherwise, or say in the glossary of docs/glossary.md that it is the same")
			}
		}
	}
	return faults
}

// TestWords: a word of the glossary is a type of one package, and of those that the glossary names beside it; the
// package has it; words that are not used are nowhere.
func TestWords(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	require.NoError(t, err)
	words, unused := readGlossary(t, string(text))
	require.Greater(t, len(words), 50)
	require.NotEmpty(t, unused)
	has := map[string]string{} // by package, all its text
	for _, s := range sources(t) {
		for _, fault := range wordsIn(s, words) {
			t.Error(fault)
		}
		has[s.dir()] += strings.ToLower(s.text)
		if s.test() {
			continue
		}
		for _, w := range unused {
			if regexp.MustCompile(`(?i)\b` + w + `\b`).MatchString(s.text) {
				t.Errorf("%s: %q is not used: the glossary of docs/glossary.md has the field's word", s.path, w)
			}
		}
	}
	for i := range words {
		w := &words[i]
		if all := has[w.home]; !strings.Contains(all, w.name) && !strings.Contains(all, w.ident()) {
			t.Errorf("docs/glossary.md: %s is to be a word of %s, which does not have it", w.name, w.home)
		}
		for _, also := range w.also {
			if _, ok := has[also]; !ok {
				t.Errorf("docs/glossary.md: %s: there is no package %s", w.name, also)
			}
		}
	}
}

// TestWordsSee: the check sees what it is for.
func TestWordsSee(t *testing.T) {
	words, unused := readGlossary(t, "| slot | a place | `gpu/exec` | `server` (the API's) |\n| edge | x | `actors/run` | |\n"+
		"\n## Words that are not used\n\n`bout` (submission), `squares` of a GPU (matrix).\n")
	require.Equal(t, []word{{"slot", "gpu/exec", []string{"server"}}, {"edge", "actors/run", nil}}, words)
	require.Equal(t, []string{"bout", "squares"}, unused)
	for _, c := range []struct{ path, text string }{
		{"cpu/a.go", "package p\ntype Slot struct{}"}, {"gpu/exec/a.go", "package p\ntype edge int"},
	} {
		require.NotEmpty(t, wordsIn(parse(t, c.path, c.text), words), c.path)
	}
	for _, c := range []struct{ path, text string }{
		{"gpu/exec/a.go", "package p\ntype slot struct{}"}, {"server/a.go", "package p\ntype slot struct{}"},
		{"cpu/a_test.go", "package p\ntype slot struct{}"}, {"cpu/a.go", "package p\nfunc slot() {}"},
	} {
		require.Empty(t, wordsIn(parse(t, c.path, c.text), words), c.path)
	}
}
