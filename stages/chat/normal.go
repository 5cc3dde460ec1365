package chat

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/jsontext"
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
	var marks *marks
	if h.Sees {
		marks = newMarks()
	}
	for i := range messages {
		place := fmt.Sprintf("messages[%d]", i)
		if role := messages[i].Role; role != "" && h.Roles != nil && !slices.Contains(h.Roles, role) {
			return nil, fault(place+".role", "%s.role is %q: want one of %s", place, shown(role), strings.Join(h.Roles, ", "))
		}
		m, fault := messages[i].normal(place, marks)
		if fault != nil {
			return nil, fault
		}
		var err error
		if out[i], err = h.called(m, b); err != nil {
			return nil, err
		}
		if h.Lists {
			out[i] = out[i].listed()
		}
	}
	return out, nil
}

// called is a message with its calls in the form that the template expects.
func (h Habits) called(m Message, b *jsontext.Budget) (Message, error) {
	if len(m.Calls) == 0 {
		return m, nil
	}
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		if err := h.arguments(&m.Calls[i], b); err != nil {
			return m, err
		}
	}
	said := m.Text()
	if h.Bare && said == "" {
		return m.silent(), nil
	}
	if h.spelling != nil {
		if text, ok := h.spelling.write(m.Calls); ok {
			return m.saying(said + text), nil
		}
	}
	return m, nil
}

func (m Message) normal(place string, marks *marks) (Message, *Fault) {
	switch m.Role {
	case "":
		return m, fault(place+".role", `%s.role is missing: want "system", "user", "assistant" or "tool"`, place)
	case "developer": // OpenAI's newer name
		m.Role = "system"
	}
	if _, says := m.thoughts(); says {
		return m.whole(place+".content", marks)
	}
	if m.Fields == nil {
		return m, nil
	}
	switch m.Fields.Get("content").(type) {
	case jsontext.List: // of nothing
		return m.saying(""), nil
	case nil, jsontext.Null:
		said, instead := m.instead()
		if !instead && !m.Called() {
			return m, fault(place+".content", "%s.content is missing: want a string or a list of text parts", place)
		}
		return m.saying(said), nil
	}
	return m, fault(place+".content", "%s.content: want a string or a list of text parts", place)
}

// instead is what an assistant without content said: its refusal; or nothing, if it has only thought so far.
func (m *Message) instead() (said string, ok bool) {
	if m.Role != "assistant" {
		return "", false
	}
	if refusal, ok := m.Fields.Get("refusal").(jsontext.String); ok {
		return string(refusal), true
	}
	return "", len(m.Parts) > 0
}

// whole is a message whose content is one text, since most templates know nothing else. A line break separates its
// parts, as in llama.cpp. Pictures have their marks in it, without any break, and stay as parts beside it.
func (m Message) whole(place string, marks *marks) (Message, *Fault) {
	var text strings.Builder
	var pictures []Part
	n, apart, after := 0, false, false // parts so far; there is more than one text; the one before was a text
	for _, p := range m.Parts {
		if p.Kind == Thought {
			continue
		}
		if p.Kind > Thought && p.At == "" {
			p.At = fmt.Sprintf("%s[%d]", place, n)
		}
		apart = apart || p.came != nil || n > 0
		n++
		if p.Kind == Image && p.Picture != nil && marks != nil {
			p, apart, after = marks.mark(p), true, false
			pictures = append(pictures, p)
			text.WriteString(p.Picture.Mark)
			continue
		}
		if fault := Reads(p); fault != nil {
			return m, fault
		}
		if after {
			text.WriteByte('\n')
		}
		text.WriteString(marks.plain(p.Text))
		after = true
	}
	if !apart && marks == nil {
		return m, nil
	}
	m = m.saying(text.String())
	m.Parts = append(pictures, m.Parts...)
	return m, nil
}

// Reads returns what is wrong with a part: the models here read text only. nil: nothing is.
func Reads(p Part) *Fault {
	list := p.At
	if at := strings.LastIndexByte(list, '['); at >= 0 && strings.HasSuffix(list, "]") {
		list = list[:at]
	}
	_, object := p.came.(*jsontext.Object)
	f := &Fault{Place: list, Unsupported: true}
	switch {
	case p.Kind <= Thought:
		return nil
	case p.came != nil && !object:
		return fault(list, `%s: want {"type": "text", "text": "..."}`, p.At)
	case p.came != nil && (p.Type == "text" || p.Type == "refusal"):
		return fault(list, "%s.text: want a string", p.At)
	case p.Type == "" && p.Kind == Image:
		f.Text = p.At + ": this model reads text only, leave images out"
	default:
		f.Text = fmt.Sprintf("%s.type is %q: this model reads text only, leave other parts out", p.At, shown(p.Type))
	}
	return f
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
