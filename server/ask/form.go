package ask

import (
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// Form reads what the answer is bound to be: response_format, and the fields of llama.cpp's, vLLM's and SGLang's
// servers. nil: anything.
func (f Fields) Form() *answer.Form {
	b := binder{Fields: f}
	b.responseFormat()
	for _, name := range [...]string{"json_schema", "guided_json"} {
		if raw, ok := f.Get(name); ok {
			b.schema(f, "", name, raw)
		}
	}
	for _, x := range [...]struct {
		name string
		make func(string) (*answer.Form, error)
	}{
		{"grammar", answer.GrammarForm}, {"guided_grammar", answer.GrammarForm}, {"ebnf", answer.GrammarForm},
		{"guided_regex", answer.RegexForm}, {"regex", answer.RegexForm},
	} {
		b.text(f, "", x.name, x.make)
	}
	b.choice(f, "", "guided_choice")
	f.Object("structured_outputs", `an object such as {"regex": "[0-9]+"}`, func(o *wire.Fields) {
		in := Fields{o}
		if raw, ok := in.Get("json"); ok {
			b.schema(in, "structured_outputs.", "json", raw)
		}
		b.text(in, "structured_outputs.", "regex", answer.RegexForm)
		b.text(in, "structured_outputs.", "grammar", answer.GrammarForm)
		b.choice(in, "structured_outputs.", "choice")
		in.Absent("structural_tag", "leave it out")
	})
	f.Text("guided_decoding_backend", new(string)) // there is one
	f.Absent("guided_whitespace_pattern", "leave it out: there may be blanks between the tokens of JSON")
	return b.form
}

// Schema reads a field that is a JSON Schema which the answer must keep; nil where it is absent.
func (f Fields) Schema(name string) *answer.Form {
	b := binder{Fields: f}
	if raw, ok := f.Get(name); ok {
		b.schema(f, "", name, raw)
	}
	return b.form
}

// AnyObject is the form of any JSON object; a field asked for it.
func (f Fields) AnyObject(name string) *answer.Form {
	b := binder{Fields: f}
	b.set(f, "", name, answer.JSONForm)
	return b.form
}

// binder collects the form; more than one is a fault.
type binder struct {
	Fields
	form *answer.Form
	from string // the field that said so
}

// responseFormat reads response_format: OpenAI's, or with the schema beside the type.
func (b *binder) responseFormat() {
	const want = `{"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "json_schema": {"schema": {...}}}`
	const place = "response_format."
	b.Object("response_format", want, func(o *wire.Fields) {
		kind, in := "text", Fields{o}
		in.Text("type", &kind)
		schema, given := in.Get("schema")
		switch kind {
		case "text":
		case "json_object":
			if given {
				b.schema(in, place, "schema", schema)
			} else {
				b.set(in, place, "type", answer.JSONForm)
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
				b.schema(in, place, "json_schema", schema)
			}
		default:
			in.Fault = wire.Invalid("type", "unsupported_value", "type is %q: want %s", wire.Shown(kind), want)
		}
	})
}

// schema takes a schema's text; some clients send it in a string.
func (b *binder) schema(in Fields, place, name, raw string) {
	if text, err := in.Reader(raw).String(); err == nil {
		raw = text
	}
	if in.bounded(name, raw) {
		b.set(in, place, name, func() (*answer.Form, error) { return answer.SchemaForm(raw) })
	}
}

func (b *binder) text(in Fields, place, name string, form func(string) (*answer.Form, error)) {
	text := ""
	in.Text(name, &text)
	if text != "" && in.bounded(name, text) {
		b.set(in, place, name, func() (*answer.Form, error) { return form(text) })
	}
}

func (b *binder) choice(in Fields, place, name string) {
	const most, mostBytes = 1024, 1024
	var texts []string
	in.Texts(name, most, mostBytes, &texts)
	if len(texts) > 0 {
		b.set(in, place, name, func() (*answer.Form, error) { return answer.ChoiceForm(texts) })
	}
}

func (f Fields) bounded(name, text string) bool {
	if len(text) > answer.MaxForm && f.Fault == nil {
		f.Fault = wire.Invalid(name, "invalid_value", "%s has %d bytes: want at most %d", name, len(text), answer.MaxForm)
	}
	return f.Fault == nil
}

// set makes the form. in is the object with the field name, place the names around it.
func (b *binder) set(in Fields, place, name string, form func() (*answer.Form, error)) {
	if in.Fault != nil || b.Fault != nil {
		return
	}
	if b.form != nil {
		b.Fault = wire.Invalid(place+name, "invalid_value", "%s and %s both say what the answer is to be: give one of them",
			b.from, place+name)
		return
	}
	made, err := form()
	if err != nil {
		in.Fault = wire.Invalid(name, "invalid_value", "%s: %v", name, err)
		return
	}
	b.form, b.from = made, place+name
}
