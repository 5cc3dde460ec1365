package openai

import (
	"errors"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// decodeChat reads the body of a chat completion.
func decodeChat(body answer.Body, find finder) (request, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return request{}, f.Fault
	}
	o, r := f.common(m)
	in := &chat.Input{Messages: f.messages(m), AddGenerationPrompt: true}
	f.Flag("add_generation_prompt", &in.AddGenerationPrompt)
	f.Flag("continue_final_message", &in.ContinueFinalMessage)
	in.AddGenerationPrompt = in.AddGenerationPrompt && !in.ContinueFinalMessage
	r.Tools = f.tools(in)
	if raw, ok := f.Get("chat_template_kwargs"); ok {
		var err error
		if in.Extra, err = chat.ParseVariables(raw, f.Budget); err != nil {
			f.Broken("chat_template_kwargs", raw, err, `an object such as {"enable_thinking": false}`)
		}
	}
	probs, top := false, 0
	f.Flag("logprobs", &probs)
	f.Count("top_logprobs", 0, answer.MaxTopProbs, &top)
	if _, asked := f.Get("top_logprobs"); asked && top > 0 && !probs {
		f.Fault = wire.Invalid("top_logprobs", "invalid_value", "top_logprobs is %d, but logprobs is not true: set it as well", top)
	}
	r.Sampling.LogProbs = -1
	if probs {
		r.Sampling.LogProbs = top
	}
	r.Grammar = f.form()
	r.Thoughts = f.reasoning()
	r.Chat = in
	o.Prompts = append(o.Prompts, r)
	return o, f.Fault
}

// reasoning reads reasoning_format: as with llama.cpp, "none" leaves the thinking in the text.
func (f fields) reasoning() (think bool) {
	format := "auto"
	f.Text("reasoning_format", &format)
	switch format {
	case "none":
		return false
	case "auto", "deepseek":
		return true
	}
	raw, _ := f.Get("reasoning_format")
	f.Wrong("reasoning_format", raw, `"auto", or "none" to leave the thinking in the text`)
	return false
}

func (f fields) messages(m *answer.Model) []chat.Message {
	const want = `want a list such as [{"role": "user", "content": "..."}]`
	raw, ok := f.Get("messages")
	if !ok {
		if f.Fault == nil {
			f.Fault = wire.Invalid("messages", "missing_required_parameter", "messages is missing: "+want)
		}
		return nil
	}
	messages, err := chat.ParseMessages(raw, answer.MaxMessages, f.Budget)
	switch {
	case err != nil:
		f.refuse(err)
	case len(messages) == 0:
		f.Fault = wire.Invalid("messages", "invalid_value", "messages is empty: "+want)
	}
	if f.Fault != nil {
		return nil
	}
	if messages, err = chat.Normalise(messages, m.Roles, f.Budget); err != nil {
		f.refuse(err)
		return nil
	}
	return messages
}

// refuse takes over what is wrong with the conversation.
func (f fields) refuse(err error) {
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
