package schema

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/grammar"
)

// writers are the habits of programs that write JSON to be read by people: each makes its text of a compact one.
var writers = map[string]func(t testing.TB, compact string) string{
	"2 blanks":       indented("  "),
	"3 blanks":       indented("   "),
	"4 blanks":       indented("    "),
	"8 blanks":       indented("        "),
	"tabs":           indented("\t"),
	"carriage":       replaced("  ", "\n", "\r\n"),
	"blank at comma": replaced("  ", ",\n", ", \n"),  // Python 2
	"blank at colon": replaced("  ", `": `, `" : `),  // Jackson, Perl
	"opened below":   replaced("\t", `: {`, ": \n{"), // JsonCpp, .NET of old
	"empty lines":    replaced("    ", ",\n", ",\n\n"),
	"one line":       replaced("", "\n", " "),
	"end of line":    func(_ testing.TB, compact string) string { return compact + "\n" },
}

func indented(by string) func(testing.TB, string) string {
	return func(t testing.TB, compact string) string {
		var out bytes.Buffer
		require.NoError(t, json.Indent(&out, []byte(compact), "", by))
		return out.String()
	}
}

func replaced(by, from, to string) func(testing.TB, string) string {
	return func(t testing.TB, compact string) string {
		return strings.ReplaceAll(indented(by)(t, compact), from, to)
	}
}

// TestSpaceOfWriters writes the reference data's texts as these programs do: what is taken without blanks is taken.
func TestSpaceOfWriters(t *testing.T) {
	type realCase struct {
		ID, Schema string
		Tests      []struct{ Text string }
	}
	taken := 0
	for c := range reference[realCase](t, "real-schemas.jsonl") {
		p, err := program(c.Schema, Options{})
		if err != nil {
			continue
		}
		for _, x := range c.Tests[:1] {
			var compact bytes.Buffer
			if json.Compact(&compact, []byte(x.Text)) != nil || strings.ContainsAny(compact.String(), "\r\n") {
				continue
			}
			if accept, _, err := p.Matcher().Check(compact.String()); err != nil || !accept {
				continue
			}
			for name, write := range writers {
				text := write(t, compact.String())
				if strings.Contains(compact.String(), `\"`) && strings.Contains(name, "blank at") {
					continue // quotes within texts
				}
				accept, n, err := p.Matcher().Check(text)
				require.NoError(t, err)
				require.True(t, accept, "%s, %s: %s\nat %d of %q", c.ID, name, c.Schema, n, text)
			}
			taken++
		}
	}
	require.Greater(t, taken, 200)
}

// TestSpaceOfDeepTexts writes texts as deep as a schema without an end lets them be indented.
func TestSpaceOfDeepTexts(t *testing.T) {
	p, err := program(`{"type":"object"}`, Options{})
	require.NoError(t, err)
	deep := strings.Repeat(`{"a":[`, mostLevels/2) + "1" + strings.Repeat("]}", mostLevels/2)
	for name, write := range writers {
		text := write(t, deep)
		accept, n, err := p.Matcher().Check(text)
		require.NoError(t, err)
		require.True(t, accept, "%s: at %d of %q", name, n, text)
	}
}

// TestSpaceIsBounded writes as many blanks, tabs and ends of lines as it may wherever it may.
func TestSpaceIsBounded(t *testing.T) {
	const nested = `{"properties":{"a":{"properties":{"b":{"const":1}},"required":["b"],"type":"object",
		"additionalProperties":false}},"required":["a"],"type":"object","additionalProperties":false}`
	for _, c := range []struct {
		name, schema string
		levels       int
	}{
		{"a number", `{"const":1}`, 0},
		{"an object", `{"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}`, 1},
		{"in an object", nested, 2},
		{"a list of objects", `{"type":"array","items":` + nested + `,"minItems":2,"maxItems":2}`, 3},
		{"without an end", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","minItems":1,"maxItems":1,
			"items":{"anyOf":[{"$ref":"#/$defs/a"},{"const":1}]}}}}`, mostLevels},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := program(c.schema, Options{})
			require.NoError(t, err)
			for _, blanks := range []string{" \n", "\t\n", "\n ", "\n\t", "\r\n \t"} {
				longest := longestSpace(t, p, blanks)
				require.LessOrEqual(t, longest, mostBlanks+2*mostLines+c.levels*mostIndent, "%q", blanks)
				if blanks == " \n" && c.levels > 0 {
					require.Equal(t, mostBlanks+1+c.levels*mostIndent, longest)
				}
			}
		})
	}
}

// longestSpace writes a text with one of these characters, the first that may follow, wherever one may. It returns how
// many there were in a run.
func longestSpace(t *testing.T, p *grammar.Program, blanks string) (longest int) {
	m, run := p.Matcher(), 0
	for range 1000 {
		next, is := byte(0), false
		for _, b := range []byte(blanks + `"ab:1{[,]}`) {
			if may(t, p, m, b) {
				next, is = b, strings.IndexByte(" \t\r\n", b) >= 0
				break
			}
		}
		if next == 0 {
			require.True(t, m.Done())
			return longest
		}
		run++
		if !is {
			run = 0
		}
		longest = max(longest, run)
		_, err := m.Read([]byte{next})
		require.NoError(t, err)
	}
	t.Fatal("there is no end of it")
	return 0
}

// may says whether a byte may follow.
func may(t *testing.T, p *grammar.Program, m *grammar.Matcher, b byte) bool {
	trie := grammar.NewTrie(256, func(id int32) []byte { return []byte{byte(id)} }, nil)
	mask := make([]uint64, trie.Words())
	require.NoError(t, p.Masker(trie).Mask(m, mask))
	return mask[b/64]>>(b%64)&1 == 1
}
