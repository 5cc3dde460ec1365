package compute

import (
	"fmt"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
)

const mostGrammar = 1 << 20 // bytes of a schema or grammar

// GrammarFlags say which form an answer must have.
type GrammarFlags struct {
	Schema  string `placeholder:"FILE" xor:"grammar" help:"JSON Schema that the answer meets." group:"Grammar:"`
	Grammar string `placeholder:"FILE" xor:"grammar" help:"Grammar in llama.cpp's GBNF that the answer is of." group:"Grammar:"`
	Regex   string `placeholder:"EXPR" xor:"grammar" help:"Regular expression (RE2) that the answer matches from end to end." group:"Grammar:"`
}

// Given says whether a form is given.
func (f GrammarFlags) Given() bool { return f.Schema != "" || f.Grammar != "" || f.Regex != "" }

// Read compiles the grammar that is given.
func (f GrammarFlags) Read(e *env.Env, o schema.Options) (*grammar.Grammar, error) {
	limits := grammar.DefaultLimits()
	switch {
	case f.Regex != "":
		return grammar.Regex(f.Regex, limits)
	case f.Schema != "":
		text, err := e.ReadFile(f.Schema, mostGrammar)
		if err != nil {
			return nil, err
		}
		g, err := schema.Compile(string(text), o, limits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Schema, err)
		}
		return g, nil
	case f.Grammar != "":
		text, err := e.ReadFile(f.Grammar, mostGrammar)
		if err != nil {
			return nil, err
		}
		g, err := grammar.GBNF(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Grammar, err)
		}
		return g, nil
	}
	return nil, env.Usagef("there is no grammar: give --schema, --regex or a grammar in GBNF")
}
