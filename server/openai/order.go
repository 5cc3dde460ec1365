package openai

import (
	"github.com/sluice-ai/sluice/actors"
)

// order is what a request of either endpoint asks for.
type order struct {
	prompts []actors.Request // one for each prompt; n choices are made of each
	n       int
	stream  bool
	usage   bool // a stream ends with the token counts
	probs   bool // log-probabilities are wanted
}

// common reads what both endpoints have into an order whose requests lack the prompts.
func (f *fields) common(m *model) (order, actors.Request) {
	o := order{n: 1}
	r := actors.Request{Sampling: f.sampling(m)}
	f.count("n", 1, maxChoices, &o.n)
	f.flag("stream", &o.stream)
	if raw, ok := f.get("stream_options"); ok {
		options := readFields(raw)
		if options.fault != nil {
			f.wrong("stream_options", raw, `an object such as {"include_usage": true}`)
		}
		options.flag("include_usage", &o.usage)
		f.adopt("stream_options", options)
	}
	f.texts("stop", maxStops, maxStopBytes, &r.Stop)
	r.MaxTokens = -1
	f.count("max_tokens", -1, anyLength, &r.MaxTokens)
	f.count("max_completion_tokens", -1, anyLength, &r.MaxTokens)
	if r.MaxTokens == 0 {
		f.wrong("max_tokens", []byte("0"), "at least 1, or -1 for as many as the context holds")
	}
	r.MaxTokens = max(r.MaxTokens, 0)
	f.flag("ignore_eos", &r.IgnoreEOG)
	if r.IgnoreEOG {
		r.Sampling.IgnoreEOG = m.endTokens
	}
	var unused string
	f.text("model", &unused) // there is one; whichever name the client knows it by
	f.text("user", &unused)
	return o, r
}

// adopt takes over the fault of an object within this one.
func (f *fields) adopt(name string, inner *fields) {
	if f.fault == nil && inner.fault != nil {
		f.fault = inner.fault
		f.fault.Param = name + "." + inner.fault.Param
		f.fault.Text = name + "." + inner.fault.Text
	}
}

// format refuses shapes of the answer that are not plain text.
func (f *fields) format() {
	raw, ok := f.get("response_format")
	if !ok {
		return
	}
	kind := "text"
	format := readFields(raw)
	format.text("type", &kind)
	switch {
	case format.fault != nil:
		f.wrong("response_format", raw, `{"type": "text"}`)
	case kind != "text":
		f.fault = Invalid("response_format", "unsupported_value",
			`response_format.type is %q, which is not supported here: leave it out and ask for the format in the prompt`, kind)
	}
}

// requests spreads the order: the n choices of each prompt differ in their seed.
func (o *order) requests() []actors.Request {
	out := make([]actors.Request, 0, len(o.prompts)*o.n)
	for _, r := range o.prompts {
		out = append(out, r.Choices(o.n)...)
	}
	return out
}
