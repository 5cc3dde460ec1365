package anthropic

import (
	"fmt"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// conversation makes the messages that templates know of those of a request.
type conversation struct{ ask.Turns }

// conversation reads system and messages.
func (f fields) conversation(m *answer.Model, in *chat.Input) {
	c := conversation{}
	f.system(&c)
	const want = `want a list such as [{"role": "user", "content": "..."}]`
	raw, ok := f.Get("messages")
	if !ok {
		if f.Fault == nil {
			f.Fault = wire.Invalid("messages", "missing_required_parameter", "messages is missing: "+want)
		}
		return
	}
	messages, err := chat.ParseMessages(raw, answer.MaxMessages, f.Budget)
	if err != nil {
		f.Refuse(err)
		return
	}
	if len(messages) == 0 {
		f.Fault = wire.Invalid("messages", "invalid_value", "messages is empty: "+want)
		return
	}
	for i := range messages {
		if f.Fault = c.add(fmt.Sprintf("messages[%d]", i), &messages[i]); f.Fault != nil {
			return
		}
	}
	unfinished, ok := c.Unfinished()
	in.ContinueFinalMessage, in.AddGenerationPrompt = unfinished, !unfinished
	if unfinished && !ok {
		f.Fault = wire.Invalid("messages", "invalid_value",
			"the last message is the assistant's and has no text to go on with: want one of the user or the results of its calls")
		return
	}
	in.Messages = f.Normal(c.Messages(), m)
}

// system reads what stands before the conversation: a text, or blocks of text.
func (f fields) system(c *conversation) {
	raw, ok := f.Get("system")
	if !ok {
		return
	}
	content, err := jinja.FromJSON(raw, f.Budget)
	if err != nil {
		f.Broken("system", raw, err, "a string or a list of text blocks")
		return
	}
	if s, ok := content.(jinja.Str); ok && s == "" {
		return
	}
	c.Begin("system")
	f.Fault = c.content("system", content)
}

// add takes the next message of a request.
func (c *conversation) add(place string, m *chat.Message) *wire.Fault {
	switch m.Role {
	case "user", "assistant", "system":
	default:
		return wire.Invalid(place+".role", "invalid_value", `%s.role is %q: want "user" or "assistant"`, place, wire.Shown(m.Role))
	}
	c.Begin(m.Role)
	return c.content(place+".content", ask.Value(m.Fields, "content"))
}

func (c *conversation) content(place string, v jinja.Value) *wire.Fault {
	switch content := v.(type) {
	case jinja.Str:
		c.Say(string(content))
		return nil
	case *jinja.List:
		for i, item := range content.Items {
			d, _ := item.(*jinja.Dict)
			if fault := c.block(fmt.Sprintf("%s[%d]", place, i), d); fault != nil {
				return fault
			}
		}
		if len(content.Items) > 0 {
			return nil
		}
	}
	return wire.Invalid(place, "invalid_value", "%s is missing or empty: want a string or a list of blocks", place)
}

// block takes a part of a message.
func (c *conversation) block(place string, d *jinja.Dict) *wire.Fault {
	kind := ask.Text(d, "type")
	switch {
	case kind == "text":
		s, ok := ask.Value(d, "text").(jinja.Str)
		if !ok {
			return wire.Invalid(place+".text", "invalid_value", "%s.text: want a string", place)
		}
		c.Say(string(s))
	case kind == "thinking" && c.Role() == "assistant":
		c.Think(ask.Text(d, "thinking"))
	case kind == "redacted_thinking" && c.Role() == "assistant": // nobody here can read it
	case kind == "tool_use" && c.Role() == "assistant":
		return c.call(place, d)
	case kind == "tool_result" && c.Role() == "user":
		return c.result(place, d)
	default:
		return wire.Invalid(place+".type", "unsupported_value",
			"%s.type is %q in a message of the %s: this model reads text, thinking of the assistant, its calls (tool_use) "+
				"and the user's results (tool_result)", place, wire.Shown(kind), c.Role())
	}
	return nil
}

func (c *conversation) call(place string, d *jinja.Dict) *wire.Fault {
	id, name := ask.Text(d, "id"), ask.Text(d, "name")
	input, object := ask.Value(d, "input").(*jinja.Dict)
	if id == "" || name == "" || !object {
		return wire.Invalid(place, "invalid_value", "%s: a tool_use needs an id, a name and an object as input", place)
	}
	c.Call(id, name, input)
	return nil
}

func (c *conversation) result(place string, d *jinja.Dict) *wire.Fault {
	id := ask.Text(d, "tool_use_id")
	if _, called := c.Called(id); !called {
		return wire.Invalid(place+".tool_use_id", "invalid_value",
			"%s.tool_use_id is %q: no tool_use before it has that id", place, wire.Shown(id))
	}
	var out conversation
	if v := ask.Value(d, "content"); v != nil && v != (jinja.None{}) {
		out.Begin("result")
		if list, ok := v.(*jinja.List); !ok || len(list.Items) > 0 {
			if fault := out.content(place+".content", v); fault != nil {
				return fault
			}
		}
	}
	c.Result(id, out.Text())
	return nil
}
