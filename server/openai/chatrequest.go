package openai

import (
	"encoding/json"
	"errors"

	"github.com/sluice-ai/sluice/stages/chat"
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
	list, err := chat.ParseTools(raw)
	if err != nil {
		f.refuse(err)
		return
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
	if messages, err = chat.Normalise(messages); err != nil {
		f.refuse(err)
		return nil
	}
	return messages
}

// refuse takes over what is wrong with the conversation.
func (f *fields) refuse(err error) {
	var fault *chat.Fault
	switch {
	case !errors.As(err, &fault):
		f.fault = Invalid("messages", "invalid_value", "%v", err)
	case fault.Unsupported:
		f.fault = Invalid(fault.Place, "unsupported_value", "%s", fault.Text)
	default:
		f.fault = Invalid(fault.Place, "invalid_value", "%s", fault.Text)
	}
}
