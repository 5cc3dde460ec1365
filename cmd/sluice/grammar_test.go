package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

func TestGrammar(t *testing.T) {
	golden(t, "grammar",
		call{args: []string{"grammar", "--schema", "testdata/grammar/s.json"}, stdin: `["{\"a\": 12}", "{\"a\":1.5}", "{}", "{\"é\":1}"]`},
		call{args: []string{"grammar", "--regex", `\d{2}é`}, stdin: `["12é", "12e", ""]`},
		call{args: []string{"grammar", "--gbnf", "testdata/grammar/g.gbnf", "--json"}, stdin: `["aaé", "é"]`},
		call{args: []string{"grammar", "--regex", `[01]`, "--masks"}, stdin: `[48]`},
		call{args: []string{"grammar", "--regex", `[01]`, "--masks"}, stdin: `[48, 49]`},
		call{args: []string{"grammar", "--schema", "testdata/grammar/bad.json"}, stdin: `[]`},
		call{args: []string{"grammar", "--schema", "testdata/grammar/none.json"}, stdin: `[]`},
		call{args: []string{"grammar", "--regex", `(`}, stdin: `[]`},
		call{args: []string{"grammar", "--regex", `a`}, stdin: `{}`},
		call{args: []string{"grammar", "--schema", "testdata/grammar/s.json", "--draft", "5"}, stdin: `[]`},
		call{args: []string{"grammar", "--schema", "testdata/grammar/s.json", "--regex", "a"}, stdin: `[]`},
		call{args: []string{"grammar"}, stdin: `[]`},
	)
}

// TestGrammarReference asks the program what the reference data answers for grammars.
func TestGrammarReference(t *testing.T) {
	type gbnfCase struct {
		Grammar string
		Tests   []struct {
			Text     string
			Accept   bool
			Consumed int
		}
	}
	for c := range testref.Cases[gbnfCase](t, "refdata", "structured", "gbnf.jsonl") {
		file := filepath.Join(t.TempDir(), "g.gbnf")
		require.NoError(t, os.WriteFile(file, []byte(c.Grammar), 0o600))
		var texts []string
		for _, x := range c.Tests {
			texts = append(texts, x.Text)
		}
		input, err := json.Marshal(texts)
		require.NoError(t, err)
		o := sluice(string(input), "grammar", "--gbnf", file)
		require.Equal(t, exitDone, o.code, o.stderr)
		var got []struct {
			Accept   bool
			Consumed int
		}
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
		require.Len(t, got, len(c.Tests))
		for i, x := range c.Tests {
			require.Equal(t, x.Accept, got[i].Accept)
			require.Equal(t, x.Consumed, got[i].Consumed)
		}
	}
}
