package main

import (
	"fmt"

	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
)

const mostGrammar = 1 << 20 // bytes of a schema or grammar

// grammarFlags say what a text must be.
type grammarFlags struct {
	Schema  string `placeholder:"FILE" xor:"grammar" help:"JSON Schema that the answer meets." group:"Grammar:"`
	Grammar string `placeholder:"FILE" xor:"grammar" help:"Grammar in llama.cpp's GBNF that the answer is of." group:"Grammar:"`
	Regex   string `placeholder:"EXPR" xor:"grammar" help:"Regular expression (RE2) that the answer matches from end to end." group:"Grammar:"`
}

// given says whether there is one.
func (f grammarFlags) given() bool { return f.Schema != "" || f.Grammar != "" || f.Regex != "" }

func (f grammarFlags) read(e *env, o schema.Options) (*grammar.Grammar, error) {
	limits := grammar.DefaultLimits()
	switch {
	case f.Regex != "":
		return grammar.Regex(f.Regex, limits)
	case f.Schema != "":
		text, err := e.readFile(f.Schema, mostGrammar)
		if err != nil {
			return nil, err
		}
		g, err := schema.Compile(string(text), o, limits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Schema, err)
		}
		return g, nil
	case f.Grammar != "":
		text, err := e.readFile(f.Grammar, mostGrammar)
		if err != nil {
			return nil, err
		}
		g, err := grammar.GBNF(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Grammar, err)
		}
		return g, nil
	}
	return nil, usagef("there is no grammar: give --schema, --regex or a grammar in GBNF")
}
