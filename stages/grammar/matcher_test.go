package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// naive finds where an expression that begins at a place of a text may end, in the plainest way. It is the oracle for
// the automaton.
func naive(g *Grammar, e Expr, text string, from map[int]bool, busy map[[2]int]bool) map[int]bool {
	to := map[int]bool{}
	for at := range from {
		switch e.kind {
		case empty:
			to[at] = true
		case literal:
			if strings.HasPrefix(text[at:], e.text) {
				to[at+len(e.text)] = true
			}
		case chars:
			r, size := utf8.DecodeRuneInString(text[at:])
			for i := 0; i < len(e.set) && size > 0; i += 2 {
				if e.set[i] <= r && r <= e.set[i+1] {
					to[at+size] = true
				}
			}
		}
	}
	switch e.kind {
	case seq:
		to = from
		for _, x := range e.of {
			to = naive(g, x, text, to, busy)
		}
	case alt:
		for _, x := range e.of {
			for at := range naive(g, x, text, from, busy) {
				to[at] = true
			}
		}
	case repeat:
		seen := from
		for n := 0; n <= len(text)+e.min+1 && (e.max < 0 || n <= e.max); n++ {
			if n >= e.min {
				for at := range seen {
					to[at] = true
				}
			}
			seen = naive(g, e.of[0], text, seen, busy)
		}
	case call:
		for at := range from {
			way := [2]int{e.rule, at}
			if busy[way] {
				continue // rules without a text may begin with themselves
			}
			busy[way] = true
			for end := range naive(g, g.Rules[e.rule].Body, text, map[int]bool{at: true}, busy) {
				to[end] = true
			}
			delete(busy, way)
		}
	}
	return to
}

// TestNaive compares random grammars with the oracle, on texts that are nearly in their languages.
func TestNaive(t *testing.T) {
	atoms := []string{`"a"`, `"b"`, `"ab"`, `[ab]`, `[^a]`, `"é"`, `.`, `""`, `x`, `y`, `("a" x)?`, `("a" y "b")`}
	item := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom(atoms).Draw(t, "atom") +
			rapid.SampledFrom([]string{"", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}"}).Draw(t, "times")
	})
	body := rapid.Custom(func(t *rapid.T) string {
		ways := rapid.SliceOfN(rapid.SliceOfN(item, 0, 3), 1, 3).Draw(t, "ways")
		var texts []string
		for _, w := range ways {
			texts = append(texts, strings.Join(w, " "))
		}
		return "( " + strings.Join(texts, " | ") + " )"
	})
	compiled := 0
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("root ::= %s\nx ::= %s\ny ::= %s\n", body.Draw(t, "root"), body.Draw(t, "x"), body.Draw(t, "y"))
		g, err := GBNF(text)
		require.NoError(t, err)
		p, err := Compile(g, DefaultLimits())
		if err != nil {
			return // left recursion
		}
		compiled++
		m := p.Matcher()
		for range 8 {
			word := rapid.StringOfN(rapid.SampledFrom([]rune("abéc")), 0, 7, -1).Draw(t, "word")
			accept, _, err := m.Check(word)
			require.NoError(t, err)
			want := naive(g, g.Rules[0].Body, word, map[int]bool{0: true}, map[[2]int]bool{})[len(word)]
			require.Equal(t, want, accept, "%s%q", text, word)
		}
	})
	require.Positive(t, compiled)
}

// TestJSONSpelling: a JSON lexeme takes a string however it is escaped, and exactly if what it says is in the language.
func TestJSONSpelling(t *testing.T) {
	exprs := []string{`(?s).*`, `[a-z"]*`, `\n+|é`, `[^\x{1F600}]*`, `.?[\x{1F000}-\x{1FFFF}]*`, `[\x{E000}-\x{10FFFF}]+`, `x{2}`, ``}
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom(exprs).Draw(t, "expr")
		left := DefaultLimits().budget()
		d, err := lang.Full(expr, &left)
		require.NoError(t, err)
		g := &Grammar{Rules: []Rule{{Name: "root", Body: Word(&Lexeme{Lang: d, Spelling: JSON, Max: -1})}}}
		p, err := Compile(g, DefaultLimits())
		require.NoError(t, err)
		text := `"`
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			text += rapid.SampledFrom([]string{"a", "é", "😀", `\u00e9`, `\n`, `\"`, "\ue000", `\ud83d\ude00`, `\uD83D`, `\ude00`,
				`\/`, `\x`, "x", `\uE000`, `\u000A`, "\n", `\ud83d\ud83d`, "￿", "€", "𐀀"}).Draw(t, "char")
		}
		text += `"`
		var said string
		want := json.Unmarshal([]byte(text), &said) == nil && !strings.Contains(said, "\ufffd") && d.Match(said)
		accept, _, err := p.Matcher().Check(text)
		require.NoError(t, err)
		require.Equal(t, want, accept, "%s: %s", expr, text)
		if accept { // there are no dead ends on the way
			m := p.Matcher()
			for i := range text {
				_, err := m.Read([]byte(text[i : i+1]))
				require.NoError(t, err)
				require.NotEmpty(t, m.set)
			}
		}
	})
}

// TestEscapes: of an escaped character, each digit is taken as long as some character of the language begins so.
func TestEscapes(t *testing.T) {
	for _, chars := range [][2]rune{{'x', 'x'}, {0x7F, 0x81}, {0xFFF, 0x1001}, {0xD7FE, 0xE001}, {0xFFFE, 0x10001},
		{0x103FE, 0x10401}, {0x1F3FF, 0x1F600}, {0x10FBFF, 0x10FFFF}} {
		left := DefaultLimits().budget()
		d, err := lang.Full(fmt.Sprintf(`[\x{%X}-\x{%X}]`, chars[0], chars[1]), &left)
		require.NoError(t, err)
		p, err := Compile(&Grammar{Rules: []Rule{{Name: "root", Body: Word(&Lexeme{Lang: d, Spelling: JSON, Max: -1})}}},
			DefaultLimits())
		require.NoError(t, err)
		begins := map[string]bool{`"`: true} // of what the language has, spelt with escapes
		for c := chars[0]; c <= chars[1]; c++ {
			text := fmt.Sprintf(`"\u%04x"`, c)
			if high, low := utf16.EncodeRune(c); c > 0xFFFF {
				text = fmt.Sprintf(`"\u%04x\u%04x"`, high, low)
			}
			if utf8.ValidRune(c) {
				for n := range text {
					begins[text[:n+1]] = true
				}
			}
		}
		for begin := range begins {
			for next := range strings.SplitSeq(`0123456789abcdef\u"`, "") {
				text := begin + next
				n, err := p.Matcher().Read([]byte(text))
				require.NoError(t, err)
				require.Equal(t, begins[text], n == len(text), "%U: %s", chars, text)
			}
		}
	}
}

// TestLongLengths: a bound of 65535 characters costs nothing until they are there.
func TestLongLengths(t *testing.T) {
	g := &Grammar{Rules: []Rule{{Name: "root", Body: Word(&Lexeme{Lang: lang.Any(), Spelling: JSON, Min: 3, Max: 65535})}}}
	p, err := Compile(g, DefaultLimits())
	require.NoError(t, err)
	m := p.Matcher()
	for n, want := range map[int]bool{0: false, 2: false, 3: true, 20000: true} {
		accept, _, err := m.Check(`"` + strings.Repeat("é", n) + `"`)
		require.NoError(t, err)
		require.Equal(t, want, accept, "%d", n)
	}
}

// TestDeepGrammars: stacks of equal content are one, tails take none, and what explodes is refused.
func TestDeepGrammars(t *testing.T) {
	m := compileGBNF(t, `root ::= "a" root | "a"`).Matcher()
	accept, _, err := m.Check(strings.Repeat("a", 10_000))
	require.NoError(t, err)
	require.True(t, accept)
	require.Len(t, m.p.stacks.list, 2) // that of the text, and of walks

	m = compileGBNF(t, "root ::= x | y\nx ::= \"a\" root \"b\" | \"c\"\ny ::= \"a\" root \"d\" | \"c\"").Matcher()
	text := strings.Repeat("a", 200) + "c" + strings.Repeat("bd", 100)
	accept, _, err = m.Check(text)
	require.NoError(t, err)
	require.True(t, accept)
	require.Less(t, len(m.p.stacks.list), 1000)

	for _, text := range []string{
		`root ::= (((("a"{200}){200}){200}){200})`,
		"root ::= x x\nx ::= " + strings.Repeat(`[\u0100-\U0001ffff]{2000} `, 10),
	} {
		g, err := GBNF(text)
		require.NoError(t, err)
		_, err = Compile(g, DefaultLimits())
		require.ErrorAs(t, err, new(*TooLarge))
	}
}

func FuzzGBNF(f *testing.F) {
	for _, text := range []string{
		`root ::= "a" [^b-d\n]{2,3} | (x)* .`, "root ::= x\nx ::= \"\\u00e9\" x? # c\n", "root ::= [\\x41-\\U0010FFFF]+", "root ::= \"a\"{,2}",
	} {
		f.Add(text, "aé")
	}
	f.Fuzz(func(t *testing.T, text, word string) {
		g, err := GBNF(text)
		if err != nil {
			return
		}
		p, err := Compile(g, Limits{Steps: 1e5, States: 1000, Nodes: 5000, Live: 4 << 20, Mask: 1e5})
		if err != nil || len(word) > 200 {
			return
		}
		m := p.Matcher()
		_, _, _ = m.Check(word)
	})
}
