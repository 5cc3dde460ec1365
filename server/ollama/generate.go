package ollama

import (
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// generate serves POST /api/generate.
func (a *api) generate(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	return a.serve(rc, x, decodeGenerate, response{})
}

// decodeGenerate decodes the body of a request without a conversation.
func decodeGenerate(body answer.Body, find decode.Finder) (request, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return request{}, in.Fault
	}
	f, vars := fields{in}, &jsontext.Object{}
	o, r := f.common(m, vars)
	prompt, suffix, system, raw := "", "", "", false
	f.Text("prompt", &prompt)
	f.Text("suffix", &suffix)
	f.Text("system", &system)
	f.Flag("raw", &raw)
	f.Absent("template", "prompts are made by the model's own template: set raw and send the whole prompt")
	pictures := f.images(m)
	r.Before = f.context(m)
	if f.Fault != nil || prompt == "" && suffix == "" {
		return o, f.Fault
	}
	switch {
	case raw && system != "":
		f.Fault = wire.Invalid("system", "invalid_value", "system has no place in a raw prompt: write it into the prompt")
	case r.Before != nil && (raw || suffix != ""):
		f.Fault = wire.Invalid("context", "invalid_value", "context has no place in a raw prompt, or before a gap: write its text "+
			"into the prompt")
	case len(pictures) > 0 && (raw || suffix != ""):
		f.Fault = wire.Invalid("images", "invalid_value", "images have no place in a raw prompt, or before a gap: leave one of both out")
	case suffix != "":
		r.Tokens, r.Thoughts = f.Fill(m, "suffix", nil, prompt, suffix), false
	case raw:
		r.Text, r.Thoughts = prompt, false
	default:
		t := decode.Turns{}
		if system != "" {
			t.Begin("system")
			t.Add(chat.Part{Text: system})
		}
		t.Begin("user")
		for _, p := range pictures {
			t.Add(p)
		}
		t.Add(chat.Part{Text: prompt})
		r.Chat = &chat.Input{Messages: f.Normal(t.Messages(), m), AddGenerationPrompt: true, Extra: vars}
		o.IDs = true
	}
	o.Prompts, o.idle = []actors.Request{r}, ""
	return o, f.Fault
}

// images decodes the pictures of a prompt.
func (f fields) images(m *answer.Model) []chat.Part {
	raw, ok := f.Get("images")
	if !ok {
		return nil
	}
	v, err := jsontext.Parse(raw, f.Budget)
	if err != nil {
		f.Broken("images", raw, err, "a list of pictures in base64")
		return nil
	}
	all := images("images", v)
	if len(all) > 0 && !m.Habits.Sees {
		if fault := chat.Reads(all[0]); fault != nil {
			f.Refuse(fault)
		}
	}
	return all
}

// context decodes the tokens of an earlier prompt and its answer, as an answer's context gave them.
func (f fields) context(m *answer.Model) []int32 {
	raw, ok := f.Get("context")
	if !ok || raw == "[]" {
		return nil
	}
	parts := f.Inputs("context", 1, m)
	if f.Fault == nil && (len(parts) != 1 || parts[0].Tokens == nil) {
		f.Wrong("context", raw, "the list of numbers that an earlier answer gave")
	}
	if f.Fault != nil {
		return nil
	}
	return parts[0].Tokens
}
