package answer

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
)

// MaxForm is how many bytes a schema, an expression or a grammar of a request may have.
const MaxForm = 1 << 18

// Form is what an answer is bound to be. Whether it can be kept is found out before anything is generated.
type Form = constrain.Form

// JSONForm is any JSON object; field is what asked for it.
func JSONForm(field string) *Form {
	return formOf(field, "object", nil, func(_ []string, l grammar.Limits) (*grammar.Grammar, error) { return schema.Any(l) })
}

// SchemaForm is the JSON that a schema allows. Formats that it names count.
func SchemaForm(field, text string) *Form {
	return formOf(field, "schema", []string{text}, func(of []string, l grammar.Limits) (*grammar.Grammar, error) {
		return schema.Compile(of[0], schema.Options{Formats: true}, l)
	})
}

// RegexForm is what an expression in RE2's syntax matches from end to end.
func RegexForm(field, expr string) *Form {
	return formOf(field, "regex", []string{expr}, func(of []string, l grammar.Limits) (*grammar.Grammar, error) {
		return grammar.Regex(of[0], l)
	})
}

// GrammarForm is a grammar in llama.cpp's GBNF.
func GrammarForm(field, text string) *Form {
	return formOf(field, "gbnf", []string{text}, func(of []string, _ grammar.Limits) (*grammar.Grammar, error) {
		return grammar.GBNF(of[0])
	})
}

// ChoiceForm is one of some texts.
func ChoiceForm(field string, texts []string) *Form {
	return formOf(field, "choice", texts, func(of []string, _ grammar.Limits) (*grammar.Grammar, error) {
		var ways []grammar.Expr
		for _, t := range of {
			ways = append(ways, grammar.Text(t))
		}
		return &grammar.Grammar{Rules: []grammar.Rule{{Name: "choice", Body: grammar.Alt(ways...)}}}, nil
	})
}

// formOf is a form of some kind that is made of texts: of copies, since these may be parts of a large body.
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
