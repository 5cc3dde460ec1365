package openai

import (
	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
)

// decodeCompletion decodes the body of a completion.
func decodeCompletion(body answer.Body, find decode.Finder) (request, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return request{}, f.Fault
	}
	o, r := f.common(m)
	r.Sampling.LogProbs = -1
	f.Count("logprobs", 0, answer.MaxTopProbs, &r.Sampling.LogProbs)
	suffix := ""
	f.Text("suffix", &suffix)
	f.Absent("echo", "put the prompt in front of the answer yourself; sluice logits has probabilities of a prompt's own tokens")
	f.Count("best_of", 1, o.N, new(int))
	r.Form = f.Form()
	for _, t := range f.Inputs("prompt", answer.MaxChoices, m) {
		prompt := actors.Request{Text: t.Text, Tokens: t.Tokens}
		if suffix != "" {
			prompt.Tokens = f.around(m, t, suffix)
		}
		prompt.Sampling, prompt.MaxTokens, prompt.Stop, prompt.IgnoreEOG = r.Sampling, r.MaxTokens, r.Stop, r.IgnoreEOG
		prompt.Form, prompt.Unguessed = r.Form, r.Unguessed
		o.Prompts = append(o.Prompts, prompt)
	}
	if all := len(o.Prompts) * o.N; all > answer.MaxChoices && f.Fault == nil {
		f.Fault = wire.Invalid("n", "invalid_value", "%d prompts with n = %d make %d choices: want at most %d",
			len(o.Prompts), o.N, all, answer.MaxChoices)
	}
	return o, f.Fault
}

// around returns the tokens of a prompt that asks for the text between before and suffix.
func (f fields) around(m *answer.Model, before answer.Text, suffix string) []int32 {
	if before.Tokens != nil && f.Fault == nil {
		f.Fault = wire.Invalid("suffix", "invalid_value", "suffix goes with a prompt that is a text: send the text of the tokens")
	}
	return f.Fill(m, "suffix", nil, before.Text, suffix)
}
