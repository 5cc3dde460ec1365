package grammar

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

func compileGBNF(t testing.TB, text string) *Program {
	g, err := GBNF(text)
	require.NoError(t, err, text)
	f, err := Compile(g, DefaultLimits())
	require.NoError(t, err, text)
	return f.Program()
}

func TestReferenceGBNF(t *testing.T) {
	type gbnfCase struct {
		ID, Grammar string
		Tests       []struct {
			Text     string
			Accept   bool
			Prefix   bool `json:"prefix_ok"`
			Consumed int
		}
	}
	for c := range testref.Cases[gbnfCase](t, "refdata", "structured", "gbnf.jsonl") {
		m := compileGBNF(t, c.Grammar).Matcher()
		for _, x := range c.Tests {
			accept, n, err := m.Check(x.Text)
			require.NoError(t, err)
			require.Equal(t, x.Accept, accept, "%s: %q", c.ID, x.Text)
			require.Equal(t, x.Consumed, n, "%s: %q", c.ID, x.Text)
		}
	}
}

func TestReferenceInvalidGBNF(t *testing.T) {
	type invalid struct{ ID, Grammar string }
	for c := range testref.Cases[invalid](t, "refdata", "structured", "gbnf-invalid.jsonl") {
		g, err := GBNF(c.Grammar)
		if err == nil {
			_, err = Compile(g, DefaultLimits())
		}
		require.Error(t, err, c.ID)
		t.Log(err)
	}
}

// TestFaultsOfGBNF: a fault is said with its line, and what stood there.
func TestFaultsOfGBNF(t *testing.T) {
	for text, want := range map[string]string{
		"root ::= \"a\"\n= \"b\"": `grammar: line 2: found "= \"b\"" where a rule's name should stand`,
		"root = \"a\"":            `grammar: line 1: found "= \"a\"" after the name "root", want ::=`,
	} {
		_, err := GBNF(text)
		require.EqualError(t, err, want)
	}
}

func TestReferenceRegex(t *testing.T) {
	type regexCase struct {
		ID, Pattern string
		GoError     string `json:"go_error"`
		Tests       []struct {
			Text string
			Full bool
		}
	}
	for c := range testref.Cases[regexCase](t, "refdata", "structured", "regex.jsonl") {
		if c.GoError != "" {
			continue
		}
		g, err := Regex(c.Pattern, DefaultLimits())
		if err != nil {
			t.Log(c.ID, err)
			continue
		}
		p, err := Compile(g, DefaultLimits())
		require.NoError(t, err)
		m := p.Matcher()
		for _, x := range c.Tests {
			accept, _, err := m.Check(x.Text)
			require.NoError(t, err)
			require.Equal(t, x.Full, accept, "%s: %q on %q", c.ID, c.Pattern, x.Text)
		}
	}
}
