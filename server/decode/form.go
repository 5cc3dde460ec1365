package decode

import (
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// Form decodes the form of the answer: response_format, and the fields of llama.cpp's, vLLM's and SGLang's servers.
// nil allows any answer.
func (f Fields) Form() *answer.Form {
	b := binder{Fields: f}
	b.responseFormat()
	for _, name := range [...]string{"json_schema", "guided_json"} {
		if raw, ok := f.Get(name); ok {
			b.schema(f, name, raw)
		}
	}
	for _, x := range [...]struct {
		name string
		form func(field, text string) *answer.Form
	}{
		{"grammar", answer.GrammarForm}, {"guided_grammar", answer.GrammarForm}, {"ebnf", answer.GrammarForm},
		{"guided_regex", answer.RegexForm}, {"regex", answer.RegexForm},
	} {
		b.text(f, x.name, x.form)
	}
	b.choice(f, "guided_choice")
	f.Object("structured_outputs", `an object such as {"regex": "[0-9]+"}`, func(o *wire.Fields) {
		in := Fields{Fields: o}
		if raw, ok := in.Get("json"); ok {
			b.schema(in, "json", raw)
		}
		b.text(in, "regex", answer.RegexForm)
		b.text(in, "grammar", answer.GrammarForm)
		b.choice(in, "choice")
		in.Absent("structural_tag", "leave it out")
	})
	f.Text("guided_decoding_backend", new(string)) // ignored: there is only one backend
	f.Absent("guided_whitespace_pattern", "leave it out: there may be blanks between the tokens of JSON")
	return b.form
}

// Schema decodes a field that holds a JSON Schema for the answer; nil if it is absent.
func (f Fields) Schema(name string) *answer.Form {
	b := binder{Fields: f}
	if raw, ok := f.Get(name); ok {
		b.schema(f, name, raw)
	}
	return b.form
}

// AnyObject returns the form of any JSON object; name is the field that asked for it.
func (f Fields) AnyObject(name string) *answer.Form {
	b := binder{Fields: f}
	b.set(f, name, answer.JSONForm(f.Place(name)))
	return b.form
}

// binder collects the form of the answer. A second form is a fault.
type binder struct {
	Fields
	form *answer.Form
}

// responseFormat decodes response_format: OpenAI's, or with the schema beside the type.
func (b *binder) responseFormat() {
	const want = `{"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "json_schema": {"schema": {...}}}`
	b.Object("response_format", want, func(o *wire.Fields) {
		kind, in := "text", Fields{Fields: o}
		in.Text("type", &kind)
		schema, given := in.Get("schema")
		switch kind {
		case "text":
		case "json_object":
			if given {
				b.schema(in, "schema", schema)
			} else {
				b.set(in, "type", answer.JSONForm(in.Place("type")))
			}
		case "json_schema":
			in.Object("json_schema", `an object with a "schema"`, func(s *wire.Fields) {
				if raw, ok := s.Get("schema"); ok {
					schema, given = raw, true
				}
			})
			if !given && in.Fault == nil {
				in.Fault = wire.Invalid("json_schema", "missing_required_parameter", "json_schema has no schema: want response_format as %s", want)
			} else if given {
				b.schema(in, "json_schema", schema)
			}
		default:
			in.Fault = wire.Invalid("type", "unsupported_value", "type is %q: want %s", wire.Shown(kind), want)
		}
	})
}

// schema adds a schema; some clients send it as JSON in a string.
func (b *binder) schema(in Fields, name, raw string) {
	if text, err := in.Reader(raw).String(); err == nil {
		raw = text
	}
	if in.bounded(name, raw) {
		b.set(in, name, answer.SchemaForm(in.Place(name), raw))
	}
}

func (b *binder) text(in Fields, name string, form func(field, text string) *answer.Form) {
	text := ""
	in.Text(name, &text)
	if text != "" && in.bounded(name, text) {
		b.set(in, name, form(in.Place(name), text))
	}
}

func (b *binder) choice(in Fields, name string) {
	const most, mostBytes = 1024, 1024
	var texts []string
	in.Texts(name, most, mostBytes, &texts)
	if len(texts) > 0 {
		b.set(in, name, answer.ChoiceForm(in.Place(name), texts))
	}
}

func (f Fields) bounded(name, text string) bool {
	if len(text) > answer.MaxForm && f.Fault == nil {
		f.Fault = wire.Invalid(name, "invalid_value", "%s has %d bytes: want at most %d", name, len(text), answer.MaxForm)
	}
	return f.Fault == nil
}

// set sets the form, or records the fault of a second one. in is the object with the field name.
func (b *binder) set(in Fields, name string, form *answer.Form) {
	switch {
	case in.Fault != nil || b.Fault != nil:
	case b.form != nil:
		b.Fault = wire.Invalid(in.Place(name), "invalid_value", "%s and %s both say what the answer is to be: give one of them",
			b.form.Field, in.Place(name))
	default:
		b.form = form
	}
}
