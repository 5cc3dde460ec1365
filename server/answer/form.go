package answer

import "github.com/sluice-ai/sluice/stages/constrain"

// MaxForm bounds the size of a schema, expression or grammar of a request, in bytes.
const MaxForm = 1 << 18

// Form is a constraint on an answer. It is compiled before anything is generated, so that the client is told of a
// fault in it first.
type Form = constrain.Form

// JSONForm allows any JSON object; faults name the field that asked for it.
func JSONForm(field string) *Form { return formOf(field, constrain.Object) }

// SchemaForm allows the JSON values of a schema. Formats that the schema names are enforced.
func SchemaForm(field, text string) *Form { return formOf(field, constrain.Schema, text) }

// RegexForm allows the texts that an expression in RE2's syntax matches from end to end.
func RegexForm(field, expr string) *Form { return formOf(field, constrain.Regex, expr) }

// GrammarForm allows the texts of a grammar in llama.cpp's GBNF.
func GrammarForm(field, text string) *Form { return formOf(field, constrain.GBNF, text) }

// ChoiceForm allows exactly the given texts.
func ChoiceForm(field string, texts []string) *Form { return formOf(field, constrain.Choice, texts...) }

func formOf(field string, kind constrain.Kind, texts ...string) *Form {
	return constrain.Source{Kind: kind, Texts: texts}.Form(field)
}
