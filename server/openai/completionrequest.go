package openai

import (
	"encoding/json"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// decodeCompletion reads the body of a completion.
func decodeCompletion(body []byte, find finder) (request, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return request{}, f.Fault
	}
	o, r := f.common(m)
	r.Sampling.LogProbs = -1
	f.Count("logprobs", 0, answer.MaxTopProbs, &r.Sampling.LogProbs)
	f.Absent("suffix", "leave it out")
	f.Absent("echo", "put the prompt in front of the answer yourself")
	f.Count("best_of", 1, o.N, new(int))
	f.format()
	for _, prompt := range f.prompts(m) {
		prompt.Sampling, prompt.MaxTokens, prompt.Stop, prompt.IgnoreEOG = r.Sampling, r.MaxTokens, r.Stop, r.IgnoreEOG
		o.Prompts = append(o.Prompts, prompt)
	}
	if all := len(o.Prompts) * o.N; all > answer.MaxChoices && f.Fault == nil {
		f.Fault = wire.Invalid("n", "invalid_value", "%d prompts with n = %d make %d choices: want at most %d",
			len(o.Prompts), o.N, all, answer.MaxChoices)
	}
	return o, f.Fault
}

// prompts takes a text, texts, token ids, or lists of token ids.
func (f fields) prompts(m *answer.Model) []actors.Request {
	const want = "a string, a list of strings, a list of token ids, or a list of such lists"
	raw, ok := f.Get("prompt")
	if !ok {
		if f.Fault == nil {
			f.Fault = wire.Invalid("prompt", "missing_required_parameter", "prompt is missing: want "+want)
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
		f.Wrong("prompt", raw, want)
		return nil
	}
	if len(list) > maxPrompts {
		f.Fault = wire.Invalid("prompt", "invalid_value", "prompt has %d entries: want at most %d", len(list), maxPrompts)
		return nil
	}
	out := make([]actors.Request, len(list))
	for i, item := range list {
		ids = nil
		switch {
		case string(item) == "null":
			f.Wrong("prompt", raw, want)
		case json.Unmarshal(item, &out[i].Text) == nil:
		case json.Unmarshal(item, &ids) == nil && len(ids) > 0:
			out[i].Tokens = f.tokens(ids, m)
		default:
			f.Wrong("prompt", item, want)
		}
	}
	return out
}

func (f fields) tokens(ids []int32, m *answer.Model) []int32 {
	for i, id := range ids {
		if (id < 0 || int(id) >= m.Vocab) && f.Fault == nil {
			f.Fault = wire.Invalid("prompt", "invalid_value", "token %d of the prompt is %d: the vocabulary has 0 to %d", i, id, m.Vocab-1)
		}
	}
	return ids
}
