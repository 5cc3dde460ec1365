package constrain

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
)

// Source is what a form is made from: its kind, and texts. It is plain, so that a form can be written down and made
// again.
type Source struct {
	Kind  Kind
	Texts []string
}

// Kind says what the texts of a Source are.
type Kind string

// The kinds. Choice takes any number of texts, Object none, the others one.
const (
	Object Kind = "object" // any object of JSON
	Schema Kind = "schema" // a JSON Schema
	Regex  Kind = "regex"  // a regular expression that the whole answer matches
	GBNF   Kind = "gbnf"   // a grammar in llama.cpp's notation
	Choice Kind = "choice" // the answer is one of the texts
)

// Form is the form that a request's field asks for. The texts are copied: the form outlives the request's body.
func (s Source) Form(field string) *Form {
	own := Source{s.Kind, make([]string, len(s.Texts))}
	for i, t := range s.Texts {
		own.Texts[i] = strings.Clone(t)
	}
	key := KeyOf(append([]string{string(s.Kind)}, own.Texts...)...)
	return &Form{Field: field, Key: key, From: &own, Make: func() (*grammar.Form, error) {
		limits := grammar.DefaultLimits()
		g, err := own.Read(schema.Options{Formats: true}, limits)
		if err != nil {
			return nil, err
		}
		return grammar.Compile(g, limits)
	}}
}

// Read compiles the grammar of the form; the options are those of a schema.
func (s *Source) Read(o schema.Options, l grammar.Limits) (*grammar.Grammar, error) {
	switch {
	case s.Kind == Object && len(s.Texts) == 0:
		return schema.Any(l)
	case s.Kind == Choice:
		var ways []grammar.Expr
		for _, t := range s.Texts {
			ways = append(ways, grammar.Text(t))
		}
		return &grammar.Grammar{Rules: []grammar.Rule{{Name: "choice", Body: grammar.Alt(ways...)}}}, nil
	case len(s.Texts) != 1:
	case s.Kind == Schema:
		return schema.Compile(s.Texts[0], o, l)
	case s.Kind == Regex:
		return grammar.Regex(s.Texts[0], l)
	case s.Kind == GBNF:
		return grammar.GBNF(s.Texts[0])
	}
	return nil, fmt.Errorf("%d texts are no form of the kind %q", len(s.Texts), s.Kind)
}
