package compute

import (
	"fmt"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/constrain"
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
	from, err := f.source(e)
	if err != nil {
		return nil, err
	}
	g, err := from.Read(o, grammar.DefaultLimits())
	return g, f.named(err)
}

// named adds the file to an error of what it holds.
func (f GrammarFlags) named(err error) error {
	if path := f.Schema + f.Grammar; err != nil && path != "" {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// Form is the form that is given, compiled, with the text that it is made from.
func (f GrammarFlags) Form(e *env.Env) (*constrain.Form, error) {
	from, err := f.source(e)
	if err != nil {
		return nil, err
	}
	form := from.Form(string(from.Kind))
	made, err := form.Make()
	form.Make = func() (*grammar.Form, error) { return made, err }
	return form, f.named(err)
}

// source reads what is given.
func (f GrammarFlags) source(e *env.Env) (s constrain.Source, err error) {
	kind, path := constrain.Schema, f.Schema
	switch {
	case f.Regex != "":
		return constrain.Source{Kind: constrain.Regex, Texts: []string{f.Regex}}, nil
	case f.Grammar != "":
		kind, path = constrain.GBNF, f.Grammar
	case f.Schema == "":
		return s, env.Usagef("there is no grammar: give --schema, --regex or a grammar in GBNF")
	}
	text, err := e.ReadFile(path, mostGrammar)
	return constrain.Source{Kind: kind, Texts: []string{string(text)}}, err
}
