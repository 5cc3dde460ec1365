package ask

import (
	"errors"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// Fields are the members of a request's body.
type Fields struct{ *wire.Fields }

// Finder finds the model that a request names.
type Finder func(name string) (*answer.Model, *wire.Fault)

// Read reads a body as far as the model that it is for; nil after a fault.
func Read(body answer.Body, find Finder) (Fields, *answer.Model) {
	f := Fields{wire.ReadFields(body.Text, body.Budget)}
	name := ""
	f.Text("model", &name)
	if f.Fault != nil {
		return f, nil
	}
	m, fault := find(name)
	f.Fault = fault
	return f, m
}

// Missing is the fault of a field that must be there.
func (f Fields) Missing(name, want string) {
	if f.Fault == nil {
		f.Fault = wire.Invalid(name, "missing_required_parameter", "%s is missing: want %s", name, want)
	}
}

// Conversation reads what a prompt is rendered from, but for the tools.
func (f Fields) Conversation(m *answer.Model) *chat.Input {
	in := &chat.Input{Messages: f.messages(m), AddGenerationPrompt: true}
	f.Flag("add_generation_prompt", &in.AddGenerationPrompt)
	f.Flag("continue_final_message", &in.ContinueFinalMessage)
	in.AddGenerationPrompt = in.AddGenerationPrompt && !in.ContinueFinalMessage
	if raw, ok := f.Get("chat_template_kwargs"); ok {
		var err error
		if in.Extra, err = chat.ParseVariables(raw, f.Budget); err != nil {
			f.Broken("chat_template_kwargs", raw, err, `an object such as {"enable_thinking": false}`)
		}
	}
	return in
}

// messages reads the conversation of a request as templates know it.
func (f Fields) messages(m *answer.Model) []chat.Message {
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
	return named(f.Normal(messages, m))
}

// named gives results of tools the names of these: templates want them, and requests have ids.
func named(messages []chat.Message) []chat.Message {
	names := map[jinja.Value]jinja.Value{}
	for i := range messages {
		m := &messages[i]
		if calls, ok := Value(m.Fields, "tool_calls").(*jinja.List); ok {
			for _, item := range calls.Items {
				call, _ := item.(*jinja.Dict)
				function, _ := Value(call, "function").(*jinja.Dict)
				if name := Text(function, "name"); name != "" {
					names[jinja.Str(Text(call, "id"))] = jinja.Str(name)
				}
			}
		}
		name, ok := names[jinja.Str(Text(m.Fields, "tool_call_id"))]
		if _, has := Value(m.Fields, "name").(jinja.Str); m.Role == "tool" && ok && !has {
			*m = m.With("name", name)
		}
	}
	return messages
}

// Normal puts messages into the form that the model's template knows.
func (f Fields) Normal(messages []chat.Message, m *answer.Model) []chat.Message {
	if f.Fault != nil {
		return nil
	}
	messages, err := chat.Normalise(messages, m.Roles, f.Budget)
	if err != nil {
		f.Refuse(err)
		return nil
	}
	return messages
}

// Refuse takes over what is wrong with the conversation.
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
