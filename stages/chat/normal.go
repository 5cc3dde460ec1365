package chat

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// Fault is what is wrong with a part of a conversation that came from outside.
type Fault struct {
	Place       string // such as messages[0].content
	Text        string // for whoever sent it; names the place
	Unsupported bool   // it is well-formed, but no model of text can read it
}

func (f *Fault) Error() string { return f.Text }

func fault(place, format string, args ...any) *Fault {
	return &Fault{Place: place, Text: fmt.Sprintf(format, args...)}
}

// Normalise returns messages in the form that templates expect: a role that they know, content as one text, the
// arguments of calls as objects, or as the template has them. All else (names, ids, fields of a model's own) stays as
// it came, and in its order. The messages given are not changed. What calls bring as JSON in a string is paid from the
// budget, which may be nil. Its errors are of type *Fault, or the budget's.
func (h Habits) Normalise(messages []Message, b *jsontext.Budget) ([]Message, error) {
	out := make([]Message, len(messages))
	for i := range messages {
		place := fmt.Sprintf("messages[%d]", i)
		if role := messages[i].Role; role != "" && h.Roles != nil && !slices.Contains(h.Roles, role) {
			return nil, fault(place+".role", "%s.role is %q: want one of %s", place, shown(role), strings.Join(h.Roles, ", "))
		}
		m, fault := messages[i].normal(place)
		if fault != nil {
			return nil, fault
		}
		if list, ok := valueIn(m.Fields, "tool_calls").(*jinja.List); ok {
			calls, err := h.calls(list, b)
			if err != nil {
				return nil, err
			}
			m = h.called(m.With("tool_calls", calls), calls)
		}
		out[i] = m
	}
	return out, nil
}

// called is a message with calls.
func (h Habits) called(m Message, calls *jinja.List) Message {
	if h.Bare && m.Content == "" && len(calls.Items) > 0 {
		return m.With("content", jinja.None{})
	}
	if h.spelling != nil {
		if text, ok := h.spelling.write(calls); ok {
			m.Content += text
			return m.With("content", jinja.Str(m.Content))
		}
	}
	return m
}

func (m Message) normal(place string) (Message, *Fault) {
	switch m.Role {
	case "":
		return m, fault(place+".role", `%s.role is missing: want "system", "user", "assistant" or "tool"`, place)
	case "developer": // OpenAI's newer name
		m.Role = "system"
		m = m.With("role", jinja.Str(m.Role))
	}
	if m.Fields == nil {
		return m, nil
	}
	_, called := m.Fields.Get("tool_calls")
	content, _ := m.Fields.Get("content")
	switch c := content.(type) {
	case jinja.Str:
	case *jinja.List:
		text, fault := joinParts(place, c)
		if fault != nil {
			return m, fault
		}
		m.Content = text
		m = m.With("content", jinja.Str(text))
	case nil, jinja.None:
		said, instead := m.instead()
		if !called && !instead {
			return m, fault(place+".content", "%s.content is missing: want a string or a list of text parts", place)
		}
		m.Content = said
		m = m.With("content", jinja.Str(said))
	default:
		return m, fault(place+".content", "%s.content: want a string or a list of text parts", place)
	}
	return m, nil
}

// instead is what an assistant without content said: it refused, or it has only thought so far.
func (m *Message) instead() (said string, ok bool) {
	if m.Role != "assistant" {
		return "", false
	}
	if refusal, ok := valueIn(m.Fields, "refusal").(jinja.Str); ok {
		return string(refusal), true
	}
	_, pondered := valueIn(m.Fields, "reasoning_content").(jinja.Str)
	return "", pondered
}

// joinParts makes one text of a content in parts: most templates know nothing else. A line break separates them,
// as llama.cpp has it.
func joinParts(place string, parts *jinja.List) (string, *Fault) {
	var texts []string
	at := place + ".content"
	for i, part := range parts.Items {
		d, ok := part.(*jinja.Dict)
		if !ok {
			return "", fault(at, `%s[%d]: want {"type": "text", "text": "..."}`, at, i)
		}
		kind, _ := d.Get("type")
		text, _ := d.Get("text")
		if kind == jinja.Str("refusal") {
			text, _ = d.Get("refusal")
		} else if kind != jinja.Str("text") {
			name, _ := kind.(jinja.Str)
			f := fault(at, "%s[%d].type is %q: this model reads text only, leave other parts out", at, i, shown(string(name)))
			f.Unsupported = true
			return "", f
		}
		s, ok := text.(jinja.Str)
		if !ok {
			return "", fault(at, "%s[%d].text: want a string", at, i)
		}
		texts = append(texts, string(s))
	}
	return strings.Join(texts, "\n"), nil
}

// dictIn is the dict at a key of a dict; nil if it is none, or there is none.
func dictIn(d *jinja.Dict, key string) *jinja.Dict {
	inner, _ := valueIn(d, key).(*jinja.Dict)
	return inner
}

func valueIn(d *jinja.Dict, key string) jinja.Value {
	if d == nil {
		return nil
	}
	v, _ := d.Get(key)
	return v
}

// replaced is a copy of a dict with another value, or one more.
func replaced(d *jinja.Dict, key string, v jinja.Value) *jinja.Dict {
	c := &jinja.Dict{}
	for k, old := range d.All() {
		c.Set(k, old)
	}
	c.Set(key, v)
	return c
}

// ParseTools decodes a list of tools as templates know them. Its errors are of type *Fault, or the budget's.
func ParseTools(text string, b *jsontext.Budget) (*jinja.List, error) {
	const want = `a list such as [{"type": "function", "function": {"name": ...}}]`
	v, err := jinja.FromJSON(text, b)
	if err != nil && b.Spent(err) {
		return nil, err
	}
	list, ok := v.(*jinja.List)
	if err != nil || !ok {
		return nil, fault("tools", "tools is %s: want %s", shown(text), want)
	}
	for i, item := range list.Items {
		if _, ok := item.(*jinja.Dict); !ok {
			return nil, fault("tools", "tools[%d] is no object: want %s", i, want)
		}
	}
	return list, nil
}

// shown is the beginning of what was found, for an error text.
func shown(found string) string {
	const most = 40
	if found == "" {
		return "empty"
	}
	if len(found) <= most {
		return found
	}
	found = found[:most]
	for !utf8.ValidString(found) && len(found) > most-utf8.UTFMax {
		found = found[:len(found)-1]
	}
	return found + "..."
}
