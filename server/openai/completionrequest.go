package openai

import (
	"errors"
	"strconv"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// decodeCompletion reads the body of a completion.
func decodeCompletion(body answer.Body, find finder) (request, *wire.Fault) {
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
	r.Grammar = f.form()
	for _, prompt := range f.prompts(m) {
		prompt.Sampling, prompt.MaxTokens, prompt.Stop, prompt.IgnoreEOG = r.Sampling, r.MaxTokens, r.Stop, r.IgnoreEOG
		prompt.Grammar = r.Grammar
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
	r := f.Reader(raw)
	if r.Next() == '"' {
		text, err := r.String()
		if err != nil {
			f.Broken("prompt", raw, err, want)
		}
		return []actors.Request{{Text: text}}
	}
	var ids []int32
	var all []actors.Request
	err := r.Array(func() error {
		var one actors.Request
		var err error
		switch r.Next() {
		case '"':
			one.Text, err = r.String()
		case '[':
			err = r.Array(func() error { return f.token(r, &one.Tokens, m) })
			if err == nil && len(one.Tokens) == 0 {
				err = errPrompt
			}
		default:
			return f.token(r, &ids, m)
		}
		if len(all) == maxPrompts && f.Fault == nil {
			f.Fault = wire.Invalid("prompt", "invalid_value", "prompt has more than %d entries: want fewer", maxPrompts)
		}
		if f.Fault != nil {
			return errPrompt
		}
		all = append(all, one)
		return err
	})
	if ids != nil {
		all = append(all, actors.Request{Tokens: ids})
	}
	if err == nil && len(all) == 0 || ids != nil && len(all) > 1 {
		err = errPrompt // nothing, or tokens beside prompts
	}
	if err != nil {
		f.Broken("prompt", raw, err, want)
	}
	return all
}

// errPrompt ends the reading of a prompt that is none.
var errPrompt = errors.New("no prompt")

// token reads one id of a prompt. There may be as many as the context holds.
func (f fields) token(r *jsontext.Reader, ids *[]int32, m *answer.Model) error {
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(raw, 10, 32)
	switch {
	case err != nil:
		return err
	case f.Fault != nil:
		return errPrompt
	case id < 0 || int(id) >= m.Vocab:
		f.Fault = wire.Invalid("prompt", "invalid_value", "token %d of the prompt is %d: the vocabulary has 0 to %d", len(*ids), id, m.Vocab-1)
		return errPrompt
	case len(*ids) == m.Context:
		f.Fault = wire.Invalid("prompt", "context_length_exceeded",
			"the prompt has more tokens than the context, which holds %d: shorten it, or start with a larger --ctx", m.Context)
		return errPrompt
	}
	*ids = append(*ids, int32(id))
	return nil
}
