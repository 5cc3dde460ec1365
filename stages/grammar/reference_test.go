package grammar

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// reference yields the cases of a file of the reference data.
func reference[T any](t testing.TB, name string) func(yield func(T) bool) {
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "refdata", "structured", name))
	require.NoError(t, err)
	return func(yield func(T) bool) {
		s := bufio.NewScanner(bytes.NewReader(text))
		s.Buffer(nil, 1<<24)
		for s.Scan() {
			var c T
			require.NoError(t, json.Unmarshal(s.Bytes(), &c))
			if !yield(c) {
				return
			}
		}
		require.NoError(t, s.Err())
	}
}

func compileGBNF(t testing.TB, text string) *Program {
	g, err := GBNF(text)
	require.NoError(t, err, text)
	p, err := Compile(g, DefaultLimits())
	require.NoError(t, err, text)
	return p
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
	for c := range reference[gbnfCase](t, "gbnf.jsonl") {
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
	for c := range reference[invalid](t, "gbnf-invalid.jsonl") {
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
	for c := range reference[regexCase](t, "regex.jsonl") {
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
