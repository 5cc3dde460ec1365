package decode

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// Fields are the members of a request's body, decoded for a model.
type Fields struct {
	*wire.Fields
	fetch, kept answer.Fetch
}

// Finder finds the model that a request names, and makes it run.
type Finder func(name string) (*answer.Model, *wire.Fault)

// Read decodes the members of a body and finds the model that it names. The model is nil after a fault.
func Read(body answer.Body, find Finder) (Fields, *answer.Model) {
	f := Fields{wire.ReadFields(body.Text, body.Budget), body.Fetch, body.Kept}
	name := ""
	f.Text("model", &name)
	if f.Fault != nil {
		return f, nil
	}
	m, fault := find(name)
	f.Fault = fault
	return f, m
}

// Missing records the fault of a missing field.
func (f Fields) Missing(name, want string) {
	if f.Fault == nil {
		f.Fault = wire.Invalid(name, "missing_required_parameter", "%s is missing: want %s", name, want)
	}
}

// Conversation decodes a prompt's conversation, without its tools.
func (f Fields) Conversation(m *answer.Model) *chat.Input {
	in := &chat.Input{AddGenerationPrompt: true, Extra: &jsontext.Object{}}
	in.Messages = f.named(f.Normal(f.Messages(), m))
	f.Effort("reasoning_effort", in.Extra)
	f.Flag("add_generation_prompt", &in.AddGenerationPrompt)
	f.Flag("continue_final_message", &in.ContinueFinalMessage)
	in.AddGenerationPrompt = in.AddGenerationPrompt && !in.ContinueFinalMessage
	if raw, ok := f.Get("chat_template_kwargs"); ok {
		vars, err := chat.ParseVariables(raw, f.Budget)
		if err != nil {
			f.Broken("chat_template_kwargs", raw, err, `an object such as {"enable_thinking": false}`)
			return in
		}
		for name, value := range vars.All() { // they override what other fields say
			in.Extra.Set(name, value)
		}
	}
	return in
}

// Messages decodes the conversation of a request, which must have a message.
func (f Fields) Messages() []chat.Message {
	const want = `a list such as [{"role": "user", "content": "..."}]`
	raw, ok := f.Get("messages")
	if !ok {
		f.Missing("messages", want)
		return nil
	}
	messages, err := chat.ParseMessages(raw, answer.MaxMessages, f.Budget)
	switch {
	case err != nil:
		f.Refuse(err)
	case len(messages) == 0:
		f.Fault = wire.Invalid("messages", "invalid_value", "messages is empty: want "+want)
	}
	return messages
}

// named adds the names of tools to their results: templates need names, but requests carry the ids of calls. An id
// without a call is a fault; a result without an id stays as it is.
func (f Fields) named(messages []chat.Message) []chat.Message {
	names := map[string]string{}
	for i := range messages {
		m, place := &messages[i], fmt.Sprintf("messages[%d]", i)
		f.called(place+".tool_calls", m, names)
		if f.Fault != nil {
			return nil
		}
		id := m.Result.Call
		if id == "" {
			continue
		}
		name, ok := names[id]
		if !ok {
			f.Fault = wire.Invalid(place+".tool_call_id", "invalid_value", "%s.tool_call_id is %q: no call before it has that id",
				place, wire.Shown(id))
			return nil
		}
		if _, has := m.Fields.Get("name").(jsontext.String); !has {
			m.Result.Name = name
		}
	}
	return messages
}

// called records the names of a message's calls by their ids.
func (f Fields) called(place string, m *chat.Message, names map[string]string) {
	const want = `want a list such as [{"type": "function", "function": {"name": "...", "arguments": "{}"}}]`
	if v := m.Fields.Get("tool_calls"); jsontext.Given(v) {
		if _, list := v.(jsontext.List); !list {
			f.Fault = wire.Invalid(place, "invalid_value", "%s: %s", place, want)
		}
	}
	for i := range m.Calls {
		c, callable := &m.Calls[i], false
		switch c.Arguments.(type) {
		case nil, jsontext.Null, jsontext.String, *jsontext.Object:
			callable = c.Name != ""
		}
		if !callable {
			f.Fault = wire.Invalid(place, "invalid_value", "%s[%d] is no call of a function: %s", place, i, want)
			return
		}
		names[c.ID] = c.Name
	}
}

// Normal rewrites messages into the form that the model's template reads.
func (f Fields) Normal(messages []chat.Message, m *answer.Model) []chat.Message {
	f.pictures(messages, m)
	if f.Fault != nil {
		return nil
	}
	messages, err := m.Habits.Normalise(messages, f.Budget)
	if err != nil {
		f.Refuse(err)
		return nil
	}
	return messages
}

// Refuse records a fault of the conversation.
func (f Fields) Refuse(err error) {
	if f.Budget.Spent(err) {
		f.Fault = wire.Malformed("", err)
		return
	}
	param, code := "messages", "invalid_value"
	if fault := (*chat.Fault)(nil); errors.As(err, &fault) {
		param = fault.Place
		if fault.Unsupported {
			code = "unsupported_value"
		}
	}
	f.Fault = wire.Invalid(param, code, "%v", err)
}
