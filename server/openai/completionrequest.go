package openai

import (
	"encoding/json"

	"github.com/sluice-ai/sluice/actors"
)

// decodeCompletion reads the body of a completion.
func decodeCompletion(body []byte, m *model) (order, *Error) {
	f := readFields(body)
	o, r := f.common(m)
	r.Sampling.LogProbs = -1
	f.count("logprobs", 0, maxTopProbs, &r.Sampling.LogProbs)
	o.probs = r.Sampling.LogProbs >= 0
	f.absent("suffix", "leave it out")
	f.absent("echo", "put the prompt in front of the answer yourself")
	f.count("best_of", 1, o.n, new(int))
	f.format()
	for _, prompt := range f.prompts(m) {
		prompt.Sampling, prompt.MaxTokens, prompt.Stop, prompt.IgnoreEOG = r.Sampling, r.MaxTokens, r.Stop, r.IgnoreEOG
		o.prompts = append(o.prompts, prompt)
	}
	if all := len(o.prompts) * o.n; all > maxChoices && f.fault == nil {
		f.fault = Invalid("n", "invalid_value", "%d prompts with n = %d make %d choices: want at most %d",
			len(o.prompts), o.n, all, maxChoices)
	}
	return o, f.fault
}

// prompts takes a text, texts, token ids, or lists of token ids.
func (f *fields) prompts(m *model) []actors.Request {
	const want = "a string, a list of strings, a list of token ids, or a list of such lists"
	raw, ok := f.get("prompt")
	if !ok {
		if f.fault == nil {
			f.fault = Invalid("prompt", "missing_required_parameter", "prompt is missing: want "+want)
		}
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []actors.Request{{Text: text}}
	}
	var ids []int32
	if json.Unmarshal(raw, &ids) == nil && len(ids) > 0 {
		return []actors.Request{{Tokens: f.tokens(ids, m)}}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		f.wrong("prompt", raw, want)
		return nil
	}
	if len(list) > maxPrompts {
		f.fault = Invalid("prompt", "invalid_value", "prompt has %d entries: want at most %d", len(list), maxPrompts)
		return nil
	}
	out := make([]actors.Request, len(list))
	for i, item := range list {
		ids = nil
		switch {
		case string(item) == "null":
			f.wrong("prompt", raw, want)
		case json.Unmarshal(item, &out[i].Text) == nil:
		case json.Unmarshal(item, &ids) == nil && len(ids) > 0:
			out[i].Tokens = f.tokens(ids, m)
		default:
			f.wrong("prompt", item, want)
		}
	}
	return out
}

func (f *fields) tokens(ids []int32, m *model) []int32 {
	for i, id := range ids {
		if (id < 0 || int(id) >= m.vocab) && f.fault == nil {
			f.fault = Invalid("prompt", "invalid_value", "token %d of the prompt is %d: the vocabulary has 0 to %d", i, id, m.vocab-1)
		}
	}
	return ids
}
