package chat

import (
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// MarshalJSON writes the message as ParseMessages reads it.
func (m Message) MarshalJSON() ([]byte, error) { return ToJSON(m.json()) }

// ToJSON writes a value as templates do.
func ToJSON(v jsontext.Value) ([]byte, error) { return jinja.ToJSON(jinja.Of(v)) }

// typedFields are the fields that Message has members for, in the order in which they are added to a message that
// came without them.
var typedFields = [...]string{"role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name"}

// json is the message as templates see it: fields in the order in which they came, typed ones with the values of
// their members; those that did not come stand at the end.
func (m *Message) json() *jsontext.Object {
	o := &jsontext.Object{}
	if m.Fields == nil {
		o.Set("role", jsontext.String(m.Role))
		if m.Result != (Result{}) {
			o.Set("tool_call_id", jsontext.String(m.Result.Call))
			o.Set("name", jsontext.String(m.Result.Name))
		}
		o.Set("content", jsontext.String(""))
	}
	for field, v := range m.Fields.All() {
		o.Set(field, v)
	}
	for _, field := range typedFields {
		if v := m.typed(field); v != nil {
			o.Set(field, v)
		}
	}
	return o
}

// typed is the value of a field by the member for it; nil: the member is empty.
func (m *Message) typed(field string) jsontext.Value {
	switch field {
	case "role":
		return named(m.Role)
	case "content":
		return m.content()
	case "reasoning_content":
		return m.thought()
	case "tool_calls":
		if len(m.Calls) == 0 {
			return nil
		}
		calls := make(jsontext.List, len(m.Calls))
		for i := range m.Calls {
			calls[i] = m.Calls[i].json()
		}
		return calls
	case "tool_call_id":
		return named(m.Result.Call)
	}
	return named(m.Result.Name)
}

func named(text string) jsontext.Value {
	if text == "" {
		return nil
	}
	return jsontext.String(text)
}

// content is one text; or a list, if the message came in parts, or has parts that are no text.
func (m *Message) content() jsontext.Value {
	var texts []string
	var list jsontext.List
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.came != nil:
			list = append(list, p.came)
		case p.Kind == Text || p.Kind == Refusal:
			texts = append(texts, p.Text)
		}
	}
	switch {
	case list != nil:
		return list
	case texts != nil:
		return jsontext.String(strings.Join(texts, "\n"))
	}
	return nil
}

// thought is all thoughts of the message, as one text; nil: there are none.
func (m *Message) thought() jsontext.Value {
	var texts []string
	for i := range m.Parts {
		if m.Parts[i].Kind == Thought {
			texts = append(texts, m.Parts[i].Text)
		}
	}
	if texts == nil {
		return nil
	}
	return jsontext.String(strings.Join(texts, "\n"))
}

// json is the call as templates see it.
func (c *Call) json() jsontext.Value {
	call, _ := c.Fields.(*jsontext.Object)
	function := call.Object("function")
	switch {
	case c.Fields == nil:
		call = &jsontext.Object{}
		call.Set("id", jsontext.String(c.ID))
		call.Set("type", jsontext.String("function"))
	case function == nil:
		return c.Fields
	}
	if c.Name != "" {
		function = function.With("name", jsontext.String(c.Name))
	}
	if c.Arguments != nil {
		function = function.With("arguments", c.Arguments)
	}
	if c.ID != "" {
		call = call.With("id", jsontext.String(c.ID))
	}
	return call.With("function", function)
}
