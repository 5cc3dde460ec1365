package lang

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/testref"
)

func budget() *Budget { return &Budget{Steps: 3e6, States: 20000} }

func TestReferenceExpressions(t *testing.T) {
	var refused int
	type regexCase struct {
		ID, Pattern string
		GoError     string `json:"go_error"`
		Tests       []struct {
			Text         string
			Full, Search bool
		}
	}
	for c := range testref.Cases[regexCase](t, "refdata", "structured", "regex.jsonl") {
		full, err := Full(c.Pattern, budget())
		search, err2 := Search(c.Pattern, budget())
		if c.GoError != "" {
			require.Error(t, err, c.ID)
			require.Error(t, err2, c.ID)
			continue
		}
		if e := (*Exhausted)(nil); errors.As(err, &e) || errors.As(err2, &e) {
			t.Log(c.ID, c.Pattern, "is too large")
			refused++
			continue
		}
		require.NoError(t, err, c.ID)
		require.NoError(t, err2, c.ID)
		for _, x := range c.Tests {
			require.Equal(t, x.Full, full.Match(x.Text), "%s: %q on %q, whole", c.ID, c.Pattern, x.Text)
			require.Equal(t, x.Search, search.Match(x.Text), "%s: %q on %q, somewhere", c.ID, c.Pattern, x.Text)
		}
	}
	require.LessOrEqual(t, refused, 2)
}

// TestAlgebra compares unions, intersections and differences with what single texts say.
func TestAlgebra(t *testing.T) {
	exprs := []string{`a*`, `[ab]{1,3}`, `(a|bb)*c?`, `.*é.*`, `[^a]+`, `(?i)ab|ß`, `\bab\b.*`, ``, `b$|^a`}
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.SampledFrom(exprs).Draw(t, "x"), rapid.SampledFrom(exprs).Draw(t, "y")
		a, err := Full(x, budget())
		require.NoError(t, err)
		b, err := Search(y, budget())
		require.NoError(t, err)
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abcAé \nß\U0001F600")), 0, 6, -1).Draw(t, "text")
		inA := regexp.MustCompile(`\A(?:` + x + `)\z`).MatchString(text)
		inB := regexp.MustCompile(y).MatchString(text)
		require.Equal(t, inA, a.Match(text))
		require.Equal(t, inB, b.Match(text))
		for _, op := range []struct {
			of   func(a, b *DFA, left *Budget) (*DFA, error)
			want bool
		}{{And, inA && inB}, {Or, inA || inB}, {Minus, inA && !inB}} {
			d, err := op.of(a, b, budget())
			require.NoError(t, err)
			require.Equal(t, op.want, d.Match(text))
		}
	})
}

func TestWordsAndLengths(t *testing.T) {
	d, err := Words([]string{"", "ab", "añ", "ac"}, budget())
	require.NoError(t, err)
	for text, want := range map[string]bool{"": true, "a": false, "ab": true, "añ": true, "an": false, "abc": false} {
		require.Equal(t, want, d.Match(text), text)
	}
	for n, text := range []string{"", "é", "éx", "éxx", "éxxx"} {
		d, err := Lengths(1, 3, budget())
		require.NoError(t, err)
		require.Equal(t, n >= 1 && n <= 3, d.Match(text))
		d, err = Lengths(2, -1, budget())
		require.NoError(t, err)
		require.Equal(t, n >= 2, d.Match(text))
	}
	d, err = Lengths(3, 2, budget())
	require.NoError(t, err)
	require.True(t, d.Empty())
}

func TestKillDistance(t *testing.T) {
	plain := []rune{' ', '"', '"' + 1} // all from the space on but the quote
	for expr, want := range map[string]int{`.{0,5}`: 5, `(?s:.*)`: 9, `[a-z]+`: 0, `[^"]{2}`: 2} {
		d, err := Full(expr, budget())
		require.NoError(t, err)
		require.Equal(t, want, d.KillDistance(plain, 9)[d.Start()], expr)
	}
}

// TestHostile: expressions whose automata explode end in an error, soon.
func TestHostile(t *testing.T) {
	for _, expr := range []string{
		`(a|b)*a(a|b){30}`, `(.*a){400}`, `(\p{L}{0,900}\d{0,900})`, `((a{0,30}){0,30})b`, `(?i)(\w*\W*){100}\pN`,
	} {
		left := budget()
		if d, err := Search(expr, left); err == nil {
			require.Less(t, d.States(), 20001, expr)
		} else {
			require.ErrorAs(t, err, new(*Exhausted), expr)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, expr := range []string{`a`, `^(a|b)*?c{2,5}$`, `(?i)\bß[^x]`, `\p{Greek}+\x{10FFFF}`, `(?m)^$`, `[[:alpha:]]\z`} {
		f.Add(expr, "abc")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		left := &Budget{Steps: 2e5, States: 2000}
		d, err := Full(expr, left)
		if err != nil {
			return
		}
		whole, err := regexp.Compile(`\A(?:` + expr + `)\z`)
		if err != nil {
			return // such as \Q, which quotes the end of the group
		}
		if text = string(bytes.ToValidUTF8([]byte(text), nil)); len(text) < 1000 {
			require.Equal(t, whole.MatchString(text), d.Match(text))
		}
	})
}
