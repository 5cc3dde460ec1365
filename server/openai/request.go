package openai

import (
	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// request is a decoded request: an order, and the format of its answer.
type request struct {
	answer.Order
	usage bool // a stream ends with the token counts
}

// finder finds models for a task, and keeps them running until the exchange ends.
func (a *api) finder(x *exchange.Exchange, do answer.Task) decode.Finder {
	return func(name string) (*answer.Model, *wire.Fault) { return a.AskedTo(x, do, name) }
}

// fields are the members of a request's body.
type fields struct{ decode.Fields }

// readRequest decodes the members of a body and finds the model that it names. The model is nil after a fault.
func readRequest(body answer.Body, find decode.Finder) (fields, *answer.Model) {
	f, m := decode.Read(body, find)
	return fields{f}, m
}

// common decodes the fields of both endpoints. The returned engine request lacks the prompt.
func (f fields) common(m *answer.Model) (request, actors.Request) {
	o := request{Order: answer.Order{Model: m, N: 1}}
	f.Terms(&o.Order)
	r := actors.Request{Sampling: f.Sampling(m)}
	f.Count("n", 1, answer.MaxChoices, &o.N)
	f.Flag("stream", &o.Stream)
	f.Flag("return_progress", &o.Reading) // as llama.cpp's server has it
	f.Object("stream_options", `an object such as {"include_usage": true}`, func(options *wire.Fields) {
		options.Flag("include_usage", &o.usage)
	})
	f.Texts("stop", answer.MaxStops, answer.MaxStopBytes, &r.Stop)
	r.MaxTokens = -1
	f.Count("max_tokens", -1, decode.AnyLength, &r.MaxTokens)
	f.Count("max_completion_tokens", -1, decode.AnyLength, &r.MaxTokens)
	if r.MaxTokens == 0 {
		f.Wrong("max_tokens", "0", "at least 1, or -1 for as many as the context holds")
	}
	r.MaxTokens = max(r.MaxTokens, 0)
	f.Flag("ignore_eos", &r.IgnoreEOG)
	if r.IgnoreEOG {
		r.Sampling.IgnoreEOG = m.EndTokens
	}
	r.Unguessed, r.Slot = f.Unguessed(), answer.SlotOf(f.Slot(m))
	f.Text("user", new(string))
	return o, r
}
