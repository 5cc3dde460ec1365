package chat

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Conversation is what a conversation file holds.
type Conversation struct {
	Messages         []Message
	Tools, Documents jsontext.Value // nil where the file has none
}

// ParseConversation decodes {"messages": […], "tools": […], "documents": […]} or a bare list of messages. All
// keys keep their order: templates print objects as they came.
func ParseConversation(text string) (Conversation, error) {
	v, err := jsontext.Parse(text, nil)
	if err != nil {
		return Conversation{}, fmt.Errorf("conversation: %w", err)
	}
	o, ok := v.(*jsontext.Object)
	if !ok {
		messages, err := messagesOf(v)
		return Conversation{Messages: messages}, err
	}
	if !o.Has("messages") {
		return Conversation{}, errors.New(`conversation: there is no "messages": want {"messages": [{"role": …, "content": …}]}`)
	}
	c := Conversation{Tools: o.Get("tools"), Documents: o.Get("documents")}
	c.Messages, err = messagesOf(o.Get("messages"))
	return c, err
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
		v, err := r.Value()
		if err == nil {
			out = append(out, messageOf(v.(*jsontext.Object)))
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
func ParseVariables(text string, b *jsontext.Budget) (*jsontext.Object, error) {
	v, err := jsontext.Parse(text, b)
	if err != nil {
		return nil, fmt.Errorf("template variables: %w", err)
	}
	o, ok := v.(*jsontext.Object)
	if !ok {
		return nil, errors.New(`template variables: want an object such as {"enable_thinking": false}`)
	}
	return o, nil
}

// ParseTools decodes a list of tools as templates know them. Its errors are of type *Fault, or the budget's.
func ParseTools(text string, b *jsontext.Budget) (jsontext.List, error) {
	const want = `a list such as [{"type": "function", "function": {"name": ...}}]`
	v, err := jsontext.Parse(text, b)
	if err != nil && b.Spent(err) {
		return nil, err
	}
	list, ok := v.(jsontext.List)
	if err != nil || !ok {
		return nil, fault("tools", "tools is %s: want %s", shown(text), want)
	}
	for i, item := range list {
		if _, ok := item.(*jsontext.Object); !ok {
			return nil, fault("tools", "tools[%d] is no object: want %s", i, want)
		}
	}
	return list, nil
}

func messagesOf(v jsontext.Value) ([]Message, error) {
	list, ok := v.(jsontext.List)
	if !ok {
		return nil, errNoList
	}
	out := make([]Message, len(list))
	for i, item := range list {
		o, ok := item.(*jsontext.Object)
		if !ok {
			return nil, fmt.Errorf(`messages[%d]: want an object: {"role": "user", "content": "…"}`, i)
		}
		out[i] = messageOf(o)
	}
	return out, nil
}

// messageOf makes a message of an object, and fills typed members from fields that have the usual form.
func messageOf(o *jsontext.Object) Message {
	m := Message{Role: o.Text("role"), Fields: o}
	if thought, ok := o.Get("reasoning_content").(jsontext.String); ok {
		m.Parts = append(m.Parts, Part{Kind: Thought, Text: string(thought)})
	}
	switch content := o.Get("content").(type) {
	case jsontext.String:
		m.Parts = append(m.Parts, Part{Text: string(content)})
	case jsontext.List:
		for _, entry := range content {
			m.Parts = append(m.Parts, partOf(entry))
		}
	}
	calls, _ := o.Get("tool_calls").(jsontext.List)
	for _, call := range calls {
		m.Calls = append(m.Calls, callOf(call))
	}
	if m.Role == "tool" {
		m.Result = Result{o.Text("tool_call_id"), o.Text("name")}
	}
	return m
}

// partOf makes a part of an entry of a content list. As in OpenAI's API, the field that is named as the part's type
// has its text.
func partOf(entry jsontext.Value) Part {
	o, _ := entry.(*jsontext.Object)
	p := Part{Text: o.Text("text"), Type: o.Text("type"), came: entry}
	switch text, ok := o.Get(p.Type).(jsontext.String); {
	case p.Type == "text" && ok:
		p.Kind = Text
	case p.Type == "refusal" && ok:
		p.Kind, p.Text = Refusal, string(text)
	default:
		p.Kind = Medium(p.Type)
	}
	if p.Kind == Image {
		p.Source = SourceOf(o)
	}
	return p
}

func callOf(v jsontext.Value) Call {
	o, _ := v.(*jsontext.Object)
	function := o.Object("function")
	return Call{ID: o.Text("id"), Name: function.Text("name"), Arguments: function.Get("arguments"), Fields: v}
}
