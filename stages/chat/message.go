package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// Message is one message of a conversation.
type Message struct {
	Role    string
	Content string // the text; of a message in parts, its text parts one after another

	// Fields is the whole message as templates see it, in the order in which it came: tool_calls, name, parts and
	// whatever else. If set, it alone is rendered; Role and Content then only repeat it.
	Fields *jinja.Dict
}

func (m *Message) value() jinja.Value {
	if m.Fields != nil {
		return m.Fields
	}
	d := &jinja.Dict{}
	d.Set("role", jinja.Str(m.Role))
	d.Set("content", jinja.Str(m.Content))
	return d
}

// With returns the message with one more field, such as reasoning_content.
func (m Message) With(field string, v jinja.Value) Message {
	m.Fields = replaced(m.value().(*jinja.Dict), field, v)
	return m
}

// lastText is where a message ends: its content, or its last text part.
func (m *Message) lastText() string {
	if m.Fields == nil {
		return m.Content
	}
	content, _ := m.Fields.Get("content")
	if parts, ok := content.(*jinja.List); ok {
		for i := len(parts.Items) - 1; i >= 0; i-- {
			if s, ok := textPart(parts.Items[i]); ok {
				return s
			}
		}
	}
	return m.Content
}

func textPart(v jinja.Value) (string, bool) {
	d, ok := v.(*jinja.Dict)
	if !ok {
		return "", false
	}
	s, _ := d.Get("text")
	text, ok := s.(jinja.Str)
	return string(text), ok
}

// MarshalJSON writes the message as ParseMessages reads it.
func (m Message) MarshalJSON() ([]byte, error) { return jinja.ToJSON(m.value()) }

// Conversation is what a conversation file holds.
type Conversation struct {
	Messages         []Message
	Tools, Documents jinja.Value // nil where the file has none
}

// ParseConversation decodes {"messages": […], "tools": […], "documents": […]} or a bare list of messages. All
// keys keep their order: templates print objects as they came.
func ParseConversation(text string) (Conversation, error) {
	v, err := jinja.FromJSON(text, nil)
	if err != nil {
		return Conversation{}, fmt.Errorf("conversation: %w", err)
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		messages, err := messagesOf(v)
		return Conversation{Messages: messages}, err
	}
	list, ok := d.Get("messages")
	if !ok {
		return Conversation{}, errors.New(`conversation: there is no "messages": want {"messages": [{"role": …, "content": …}]}`)
	}
	c := Conversation{}
	if c.Messages, err = messagesOf(list); err != nil {
		return c, err
	}
	c.Tools, _ = d.Get("tools")
	c.Documents, _ = d.Get("documents")
	return c, nil
}

// maxNesting bounds a list of messages from outside; tool schemas nest 10 or so levels deep.
const maxNesting = 100

// ParseMessages decodes a list of up to so many messages, within a budget.
func ParseMessages(text string, most int, b *jsontext.Budget) ([]Message, error) {
	r := jsontext.New(text, maxNesting, b)
	if r.Next() != '[' {
		return nil, errNoList
	}
	var out []Message
	err := r.Array(func() error {
		if len(out) == most {
			return fault("messages", "messages has more than %d entries: leave the oldest out", most)
		}
		if r.Next() != '{' {
			return fmt.Errorf(`messages[%d]: want an object: {"role": "user", "content": "…"}`, len(out))
		}
		v, err := jinja.ReadJSON(r)
		if err == nil {
			out = append(out, messageOf(v.(*jinja.Dict)))
		}
		return err
	})
	if err == nil {
		err = r.End()
	}
	if syntax := (*jsontext.SyntaxError)(nil); errors.As(err, &syntax) {
		err = fmt.Errorf("messages: JSON: %w", err)
	}
	return out, err
}

var errNoList = errors.New(`messages: want a list: [{"role": "user", "content": "…"}]`)

// ParseVariables decodes an object of template variables, such as {"enable_thinking": false}.
func ParseVariables(text string, b *jsontext.Budget) (*jinja.Dict, error) {
	v, err := jinja.FromJSON(text, b)
	if err != nil {
		return nil, fmt.Errorf("template variables: %w", err)
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		return nil, errors.New(`template variables: want an object such as {"enable_thinking": false}`)
	}
	return d, nil
}

func messagesOf(v jinja.Value) ([]Message, error) {
	list, ok := v.(*jinja.List)
	if !ok {
		return nil, errNoList
	}
	out := make([]Message, len(list.Items))
	for i, item := range list.Items {
		d, ok := item.(*jinja.Dict)
		if !ok {
			return nil, fmt.Errorf(`messages[%d]: want an object: {"role": "user", "content": "…"}`, i)
		}
		out[i] = messageOf(d)
	}
	return out, nil
}

func messageOf(d *jinja.Dict) Message {
	m := Message{Fields: d}
	if role, _ := d.Get("role"); role != nil {
		s, _ := role.(jinja.Str)
		m.Role = string(s)
	}
	switch content, _ := d.Get("content"); c := content.(type) {
	case jinja.Str:
		m.Content = string(c)
	case *jinja.List:
		var all strings.Builder
		for _, part := range c.Items {
			s, _ := textPart(part)
			all.WriteString(s)
		}
		m.Content = all.String()
	}
	return m
}
