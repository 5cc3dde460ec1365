package answer

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
)

// MaxForm bounds the size of a schema, expression or grammar of a request, in bytes.
const MaxForm = 1 << 18

// Form is a constraint on an answer. It is compiled before anything is generated, so that the client is told of a
// fault in it first.
type Form = constrain.Form

// JSONForm allows any JSON object; faults name the field that asked for it.
func JSONForm(field string) *Form {
	return formOf(field, "object", nil, func(_ []string, l grammar.Limits) (*grammar.Grammar, error) { return schema.Any(l) })
}

// SchemaForm allows the JSON values of a schema. Formats that the schema names are enforced.
func SchemaForm(field, text string) *Form {
	return formOf(field, "schema", []string{text}, func(of []string, l grammar.Limits) (*grammar.Grammar, error) {
		return schema.Compile(of[0], schema.Options{Formats: true}, l)
	})
}

// RegexForm allows the texts that an expression in RE2's syntax matches from end to end.
func RegexForm(field, expr string) *Form {
	return formOf(field, "regex", []string{expr}, func(of []string, l grammar.Limits) (*grammar.Grammar, error) {
		return grammar.Regex(of[0], l)
	})
}

// GrammarForm allows the texts of a grammar in llama.cpp's GBNF.
func GrammarForm(field, text string) *Form {
	return formOf(field, "gbnf", []string{text}, func(of []string, _ grammar.Limits) (*grammar.Grammar, error) {
		return grammar.GBNF(of[0])
	})
}

// ChoiceForm allows exactly the given texts.
func ChoiceForm(field string, texts []string) *Form {
	return formOf(field, "choice", texts, func(of []string, _ grammar.Limits) (*grammar.Grammar, error) {
		var ways []grammar.Expr
		for _, t := range of {
			ways = append(ways, grammar.Text(t))
		}
		return &grammar.Grammar{Rules: []grammar.Rule{{Name: "choice", Body: grammar.Alt(ways...)}}}, nil
	})
}

// formOf makes a form of a kind from texts. It copies the texts, since they may be parts of a large body.
func formOf(field, kind string, of []string, read func([]string, grammar.Limits) (*grammar.Grammar, error)) *Form {
	own := make([]string, len(of))
	for i, t := range of {
		own[i] = strings.Clone(t)
	}
	key := constrain.KeyOf(append([]string{kind}, own...)...)
	return &Form{Field: field, Key: key, Make: func() (*grammar.Form, error) {
		limits := grammar.DefaultLimits()
		g, err := read(own, limits)
		if err != nil {
			return nil, err
		}
		return grammar.Compile(g, limits)
	}}
}
