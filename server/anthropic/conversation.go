package anthropic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// conversation makes the messages that templates know of those of a request: calls are members of the assistant's,
// results are messages of their own, and neighbours of one role are one message.
type conversation struct {
	all   []chat.Message
	turn  turn
	names map[string]string // of tools, by the ids of the calls so far
}

// turn is the message that is being put together.
type turn struct {
	role            string
	texts, thoughts []string
	calls           []jinja.Value
}

// conversation reads system and messages.
func (f fields) conversation(m *answer.Model, in *chat.Input) {
	c := conversation{names: map[string]string{}}
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
		f.refuse(err)
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
	in.ContinueFinalMessage = c.turn.role == "assistant"
	in.AddGenerationPrompt = !in.ContinueFinalMessage
	if in.ContinueFinalMessage && (len(c.turn.calls) > 0 || strings.TrimSpace(c.turn.text()) == "") {
		f.Fault = wire.Invalid("messages", "invalid_value",
			"the last message is the assistant's and has no text to go on with: want one of the user or the results of its calls")
		return
	}
	c.close()
	if in.Messages, err = chat.Normalise(c.all, m.Roles, f.Budget); err != nil {
		f.refuse(err)
	}
}

// refuse takes over what is wrong with the conversation.
func (f fields) refuse(err error) {
	if f.Budget.Spent(err) {
		f.Fault = wire.Malformed("", err)
		return
	}
	place := "messages"
	if fault := (*chat.Fault)(nil); errors.As(err, &fault) {
		place = fault.Place
	}
	f.Fault = wire.Invalid(place, "invalid_value", "%v", err)
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
	c.begin("system")
	f.Fault = c.content("system", content)
}

// add takes the next message of a request.
func (c *conversation) add(place string, m *chat.Message) *wire.Fault {
	switch m.Role {
	case "user", "assistant", "system":
	default:
		return wire.Invalid(place+".role", "invalid_value", `%s.role is %q: want "user" or "assistant"`, place, wire.Shown(m.Role))
	}
	c.begin(m.Role)
	return c.content(place+".content", value(m.Fields, "content"))
}

// begin starts a message, unless it goes on with one of the same role.
func (c *conversation) begin(role string) {
	if c.turn.role != role {
		c.close()
		c.turn = turn{role: role}
	}
}

func (c *conversation) content(place string, v jinja.Value) *wire.Fault {
	switch content := v.(type) {
	case jinja.Str:
		c.turn.texts = append(c.turn.texts, string(content))
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
	kind := text(d, "type")
	switch {
	case kind == "text":
		s, ok := value(d, "text").(jinja.Str)
		if !ok {
			return wire.Invalid(place+".text", "invalid_value", "%s.text: want a string", place)
		}
		c.turn.texts = append(c.turn.texts, string(s))
	case kind == "thinking" && c.turn.role == "assistant":
		if s := text(d, "thinking"); s != "" {
			c.turn.thoughts = append(c.turn.thoughts, s)
		}
	case kind == "redacted_thinking" && c.turn.role == "assistant": // nobody here can read it
	case kind == "tool_use" && c.turn.role == "assistant":
		return c.call(place, d)
	case kind == "tool_result" && c.turn.role == "user":
		return c.result(place, d)
	default:
		return wire.Invalid(place+".type", "unsupported_value",
			"%s.type is %q in a message of the %s: this model reads text, thinking of the assistant, its calls (tool_use) "+
				"and the user's results (tool_result)", place, wire.Shown(kind), c.turn.role)
	}
	return nil
}

func (c *conversation) call(place string, d *jinja.Dict) *wire.Fault {
	id, name := text(d, "id"), text(d, "name")
	input, object := value(d, "input").(*jinja.Dict)
	if id == "" || name == "" || !object {
		return wire.Invalid(place, "invalid_value", "%s: a tool_use needs an id, a name and an object as input", place)
	}
	c.names[id] = name
	c.turn.calls = append(c.turn.calls, dict("id", jinja.Str(id), "type", jinja.Str("function"),
		"function", dict("name", jinja.Str(name), "arguments", input)))
	return nil
}

func (c *conversation) result(place string, d *jinja.Dict) *wire.Fault {
	id := text(d, "tool_use_id")
	name, called := c.names[id]
	if !called {
		return wire.Invalid(place+".tool_use_id", "invalid_value",
			"%s.tool_use_id is %q: no tool_use before it has that id", place, wire.Shown(id))
	}
	c.close() // what the user said before it
	var out conversation
	if v := value(d, "content"); v != nil && v != (jinja.None{}) {
		out.turn.role = "result"
		if list, ok := v.(*jinja.List); !ok || len(list.Items) > 0 {
			if fault := out.content(place+".content", v); fault != nil {
				return fault
			}
		}
	}
	c.all = append(c.all, chat.Message{Fields: dict("role", jinja.Str("tool"), "tool_call_id", jinja.Str(id),
		"name", jinja.Str(name), "content", jinja.Str(out.turn.text())), Role: "tool", Content: out.turn.text()})
	return nil
}

// text is what a message says. A line break separates blocks, as parts of messages in other dialects.
func (t *turn) text() string { return strings.Join(t.texts, "\n") }

// close adds the message at hand to those that are complete. The role goes on: more of it is another message.
func (c *conversation) close() {
	t := c.turn
	c.turn = turn{role: t.role}
	if len(t.texts)+len(t.thoughts)+len(t.calls) == 0 {
		return
	}
	d := dict("role", jinja.Str(t.role), "content", jinja.Str(t.text()))
	if len(t.thoughts) > 0 {
		d.Set("reasoning_content", jinja.Str(strings.Join(t.thoughts, "\n")))
	}
	if len(t.calls) > 0 {
		d.Set("tool_calls", &jinja.List{Items: t.calls})
	}
	c.all = append(c.all, chat.Message{Role: t.role, Content: t.text(), Fields: d})
}
