package answer

import (
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
)

// MaxForm is how many bytes a schema, an expression or a grammar of a request may have.
const MaxForm = 1 << 18

// Form is what an answer is bound to be. Each function finds out whether it can be kept: a form that cannot is refused
// before anything is generated.
type Form = grammar.Grammar

// JSONForm is any JSON object.
func JSONForm() (*Form, error) { return checked(schema.Any(grammar.DefaultLimits())) }

// SchemaForm is the JSON that a schema allows. Formats that it names count.
func SchemaForm(text string) (*Form, error) {
	return checked(schema.Compile(text, schema.Options{Formats: true}, grammar.DefaultLimits()))
}

// RegexForm is what an expression in RE2's syntax matches from end to end.
func RegexForm(expr string) (*Form, error) {
	return checked(grammar.Regex(expr, grammar.DefaultLimits()))
}

// GrammarForm is a grammar in llama.cpp's GBNF.
func GrammarForm(text string) (*Form, error) { return checked(grammar.GBNF(text)) }

// ChoiceForm is one of some texts.
func ChoiceForm(texts []string) (*Form, error) {
	var ways []grammar.Expr
	for _, t := range texts {
		ways = append(ways, grammar.Text(t))
	}
	return checked(&Form{Rules: []grammar.Rule{{Name: "choice", Body: grammar.Alt(ways...)}}}, nil)
}

func checked(f *Form, err error) (*Form, error) {
	if err == nil {
		_, err = grammar.Compile(f, grammar.DefaultLimits())
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}
