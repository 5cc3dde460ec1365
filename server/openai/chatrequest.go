package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// decodeChat reads the body of a chat completion.
func decodeChat(body []byte, m *model) (order, *Error) {
	f := readFields(body)
	o, r := f.common(m)
	in := &chat.Input{Messages: f.messages(), AddGenerationPrompt: true}
	f.flag("add_generation_prompt", &in.AddGenerationPrompt)
	f.flag("continue_final_message", &in.ContinueFinalMessage)
	in.AddGenerationPrompt = in.AddGenerationPrompt && !in.ContinueFinalMessage
	f.tools(in)
	if raw, ok := f.get("chat_template_kwargs"); ok {
		var err error
		if in.Extra, err = chat.ParseVariables(raw); err != nil {
			f.wrong("chat_template_kwargs", raw, `an object such as {"enable_thinking": false}`)
		}
	}
	f.flag("logprobs", &o.probs)
	top := 0
	f.count("top_logprobs", 0, maxTopProbs, &top)
	if _, asked := f.get("top_logprobs"); asked && top > 0 && !o.probs {
		f.fault = Invalid("top_logprobs", "invalid_value", "top_logprobs is %d, but logprobs is not true: set it as well", top)
	}
	r.Sampling.LogProbs = -1
	if o.probs {
		r.Sampling.LogProbs = top
	}
	f.format()
	r.Thoughts = f.reasoning()
	r.Chat = in
	o.prompts = append(o.prompts, r)
	return o, f.fault
}

// reasoning reads reasoning_format: as with llama.cpp, "none" leaves the thinking in the text.
func (f *fields) reasoning() (think bool) {
	format := "auto"
	f.text("reasoning_format", &format)
	switch format {
	case "none":
		return false
	case "auto", "deepseek":
		return true
	}
	raw, _ := f.get("reasoning_format")
	f.wrong("reasoning_format", raw, `"auto", or "none" to leave the thinking in the text`)
	return false
}

// tools hands the tools to the template. What the model then writes is text.
func (f *fields) tools(in *chat.Input) {
	const want = `a list such as [{"type": "function", "function": {"name": ...}}]`
	raw, ok := f.get("tools")
	if !ok {
		return
	}
	choice := "auto"
	if c, ok := f.get("tool_choice"); ok && json.Unmarshal(c, &choice) != nil {
		choice = string(c)
	}
	if choice != "auto" && choice != "none" {
		f.fault = Invalid("tool_choice", "unsupported_value",
			`tool_choice is %s: a call cannot be forced here, want "auto" or "none"`, shown([]byte(choice)))
		return
	}
	v, err := jinja.FromJSON(raw)
	list, ok := v.(*jinja.List)
	if err != nil || !ok {
		f.wrong("tools", raw, want)
		return
	}
	for i, item := range list.Items {
		if _, ok := item.(*jinja.Dict); !ok {
			f.fault = Invalid("tools", "invalid_value", "tools[%d] is no object: want %s", i, want)
			return
		}
	}
	if choice == "auto" && len(list.Items) > 0 {
		in.Tools = list
	}
}

func (f *fields) messages() []chat.Message {
	const want = `want a list such as [{"role": "user", "content": "..."}]`
	raw, ok := f.get("messages")
	if !ok {
		if f.fault == nil {
			f.fault = Invalid("messages", "missing_required_parameter", "messages is missing: "+want)
		}
		return nil
	}
	messages, err := chat.ParseMessages(raw)
	switch {
	case err != nil:
		f.fault = Invalid("messages", "invalid_value", "%v", err)
	case len(messages) == 0:
		f.fault = Invalid("messages", "invalid_value", "messages is empty: "+want)
	case len(messages) > maxMessages:
		f.fault = Invalid("messages", "invalid_value", "messages has %d entries: want at most %d", len(messages), maxMessages)
	}
	if f.fault != nil {
		return nil
	}
	for i := range messages {
		if fault := settle(fmt.Sprintf("messages[%d]", i), &messages[i]); fault != nil {
			f.fault = fault
			return nil
		}
	}
	return messages
}

// settle gives a message the form that templates expect: a role they know, content as one text, the arguments of
// tool calls as objects.
func settle(place string, m *chat.Message) *Error {
	if m.Role == "" {
		return Invalid(place+".role", "invalid_value", `%s.role: want "system", "user", "assistant" or "tool"`, place)
	}
	if m.Role == "developer" { // OpenAI's newer name
		m.Role = "system"
		m.Fields.Set("role", jinja.Str(m.Role))
	}
	_, calls := m.Fields.Get("tool_calls")
	content, _ := m.Fields.Get("content")
	switch c := content.(type) {
	case jinja.Str:
	case *jinja.List:
		text, fault := joinParts(place, c)
		if fault != nil {
			return fault
		}
		m.Content = text
		m.Fields.Set("content", jinja.Str(text))
	case nil, jinja.None:
		if !calls {
			return Invalid(place+".content", "invalid_value", "%s.content is missing: want a string or a list of text parts", place)
		}
		m.Fields.Set("content", jinja.Str(""))
	default:
		return Invalid(place+".content", "invalid_value", "%s.content: want a string or a list of text parts", place)
	}
	if calls {
		openArguments(m)
	}
	return nil
}

// joinParts makes one text of a content in parts: most templates know nothing else. A line break separates them,
// as llama.cpp has it.
func joinParts(place string, parts *jinja.List) (string, *Error) {
	var texts []string
	for i, part := range parts.Items {
		d, ok := part.(*jinja.Dict)
		if !ok {
			return "", Invalid(place+".content", "invalid_value", `%s.content[%d]: want {"type": "text", "text": "..."}`, place, i)
		}
		kind, _ := d.Get("type")
		text, _ := d.Get("text")
		if kind == jinja.Str("refusal") {
			text, _ = d.Get("refusal")
		} else if kind != jinja.Str("text") {
			name, _ := kind.(jinja.Str)
			return "", Invalid(place+".content", "unsupported_value",
				"%s.content[%d].type is %q: this model reads text only, leave other parts out", place, i, shown([]byte(name)))
		}
		s, ok := text.(jinja.Str)
		if !ok {
			return "", Invalid(place+".content", "invalid_value", "%s.content[%d].text: want a string", place, i)
		}
		texts = append(texts, string(s))
	}
	return strings.Join(texts, "\n"), nil
}

// openArguments parses the arguments of tool calls, which are JSON in a string here and objects in templates.
func openArguments(m *chat.Message) {
	calls, _ := m.Fields.Get("tool_calls")
	list, _ := calls.(*jinja.List)
	if list == nil {
		return
	}
	for _, item := range list.Items {
		call, _ := item.(*jinja.Dict)
		if call == nil {
			continue
		}
		function, _ := call.Get("function")
		d, _ := function.(*jinja.Dict)
		if d == nil {
			continue
		}
		arguments, _ := d.Get("arguments")
		text, ok := arguments.(jinja.Str)
		if !ok {
			continue
		}
		if v, err := jinja.FromJSON([]byte(text)); err == nil {
			if object, ok := v.(*jinja.Dict); ok {
				d.Set("arguments", object)
			}
		}
	}
}
