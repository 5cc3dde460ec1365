package openai

import (
	"math"
	"strings"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
)

// decodeChat decodes the body of a chat completion.
func decodeChat(body answer.Body, find decode.Finder) (request, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return request{}, f.Fault
	}
	o, r := f.common(m)
	in := f.Conversation(m)
	r.Tools = f.Tools(in)
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
	r.Form = f.Form()
	r.Thoughts = f.reasoning()
	f.Count("thinking_budget_tokens", 1, math.MaxInt32, &r.MostThoughts) // as llama.cpp's server has it
	r.Prediction = f.Prediction()
	f.missing()
	r.Chat = in
	o.Prompts, o.Notes = append(o.Prompts, r), f.Notes
	return o, f.Fault
}

// missing refuses fields that ask for more than text, and the functions that preceded tools.
func (f fields) missing() {
	if raw, _ := f.Get("functions"); raw != "[]" {
		f.Absent("functions", "send them as tools")
	}
	f.Absent("audio", "leave it out: answers are texts")
	f.Absent("web_search_options", "leave it out: the server has no tools of its own")
	if raw, ok := f.Get("modalities"); ok && strings.Join(strings.Fields(raw), "") != `["text"]` {
		f.Wrong("modalities", raw, `["text"]`)
	}
}

// reasoning decodes reasoning_format and reports whether thoughts are apart from the text; as with llama.cpp, "none"
// leaves them in it.
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
