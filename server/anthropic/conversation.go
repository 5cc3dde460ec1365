package anthropic

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// conversation turns a request's messages into those that chat templates read.
type conversation struct{ decode.Turns }

// conversation decodes system and messages.
func (f fields) conversation(m *answer.Model, in *chat.Input) {
	c := conversation{}
	f.system(&c)
	messages := f.Messages()
	if f.Fault != nil {
		return
	}
	for i := range messages {
		if f.Fault = c.add(fmt.Sprintf("messages[%d]", i), &messages[i]); f.Fault != nil {
			return
		}
	}
	unfinished, ok := c.Unfinished()
	in.ContinueFinalMessage, in.AddGenerationPrompt = unfinished, !unfinished
	in.Messages = f.Normal(c.Messages(), m)
	if unfinished && !ok && f.Fault == nil {
		f.Fault = wire.Invalid("messages", "invalid_value",
			"the last message is the assistant's and has no text to go on with: want one of the user or the results of its calls")
	}
}

// system decodes the system prompt: a text, or blocks of text.
func (f fields) system(c *conversation) {
	raw, ok := f.Get("system")
	if !ok {
		return
	}
	content, err := jsontext.Parse(raw, f.Budget)
	if err != nil {
		f.Broken("system", raw, err, "a string or a list of text blocks")
		return
	}
	if list, blocks := content.(jsontext.List); content == jsontext.String("") || blocks && len(list) == 0 {
		return // gateways send it where there is none
	}
	c.Begin("system")
	f.Fault = c.content("system", content)
}

// add appends the next message of a request.
func (c *conversation) add(place string, m *chat.Message) *wire.Fault {
	switch m.Role {
	case "user", "assistant", "system":
	default:
		return wire.Invalid(place+".role", "invalid_value", `%s.role is %q: want "user" or "assistant"`, place, wire.Shown(m.Role))
	}
	c.Begin(m.Role)
	return c.content(place+".content", m.Fields.Get("content"))
}

func (c *conversation) content(place string, v jsontext.Value) *wire.Fault {
	switch content := v.(type) {
	case jsontext.String:
		c.Add(chat.Part{Text: string(content)})
		return nil
	case jsontext.List:
		for i, item := range content {
			o, _ := item.(*jsontext.Object)
			if fault := c.block(fmt.Sprintf("%s[%d]", place, i), o); fault != nil {
				return fault
			}
		}
		if len(content) > 0 {
			return nil
		}
	}
	return wire.Invalid(place, "invalid_value", "%s is missing or empty: want a string or a list of blocks", place)
}

// block appends one block of a message's content.
func (c *conversation) block(place string, o *jsontext.Object) *wire.Fault {
	kind, assistant := o.Text("type"), c.Role() == "assistant"
	switch {
	case kind == "text":
		text, ok := o.Get("text").(jsontext.String)
		if !ok {
			return wire.Invalid(place+".text", "invalid_value", "%s.text: want a string", place)
		}
		c.Add(chat.Part{Text: string(text)})
	case kind == "document" && plain(o) != "":
		c.Add(chat.Part{Text: plain(o)})
	case kind == "image", kind == "document":
		c.Add(chat.Part{Kind: chat.Medium(kind), Type: kind, At: place, Source: chat.SourceOf(o)})
	case kind == "thinking" && assistant:
		c.Add(chat.Part{Kind: chat.Thought, Text: o.Text("thinking")})
	case kind == "redacted_thinking" && assistant: // left out: it is encrypted for Anthropic's servers
	case kind == "tool_use" && assistant:
		return c.call(place, o)
	case kind == "tool_result" && c.Role() == "user":
		return c.result(place, o)
	default:
		return wire.Invalid(place+".type", "unsupported_value",
			"%s.type is %q in a message of the %s: this model reads text, thinking of the assistant, its calls (tool_use) "+
				"and the user's results (tool_result)", place, wire.Shown(kind), c.Role())
	}
	return nil
}

// plain returns the text of a document that is nothing else, below its title; empty for other documents.
func plain(o *jsontext.Object) string {
	source := o.Object("source")
	if source == nil || source.Text("type") != "text" {
		return ""
	}
	text := source.Text("data")
	if title := o.Text("title"); title != "" && text != "" {
		text = title + "\n\n" + text
	}
	return text
}

func (c *conversation) call(place string, o *jsontext.Object) *wire.Fault {
	id, name, input := o.Text("id"), o.Text("name"), o.Object("input")
	if id == "" || name == "" || input == nil {
		return wire.Invalid(place, "invalid_value", "%s: a tool_use needs an id, a name and an object as input", place)
	}
	c.Call(chat.Call{ID: id, Name: name, Arguments: input})
	return nil
}

func (c *conversation) result(place string, o *jsontext.Object) *wire.Fault {
	id := o.Text("tool_use_id")
	if !c.Called(id) {
		return wire.Invalid(place+".tool_use_id", "invalid_value",
			"%s.tool_use_id is %q: no tool_use before it has that id", place, wire.Shown(id))
	}
	var out conversation
	out.Begin("result")
	if v := o.Get("content"); jsontext.Given(v) {
		if list, ok := v.(jsontext.List); !ok || len(list) > 0 {
			if fault := out.content(place+".content", v); fault != nil {
				return fault
			}
		}
	}
	c.Result(id, out.Parts())
	return nil
}
