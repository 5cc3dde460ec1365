package ollama

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// request is a decoded request: an order, or none if it only loads or unloads a model.
type request struct {
	answer.Order
	idle   string // why there is no order: "load" or "unload"; empty: there is one
	unload bool   // the model is to be unloaded after the answer
}

// fields are the members of a request's body.
type fields struct{ decode.Fields }

// common decodes the fields of both endpoints. The returned engine request lacks the prompt.
func (f fields) common(m *answer.Model, vars *jsontext.Object) (o request, r actors.Request) {
	o = request{Order: answer.Order{Model: m, N: 1, Stream: true}}
	f.Terms(&o.Order)
	f.Flag("stream", &o.Stream)
	r.Thoughts = true
	f.options(m, &r)
	f.probs(&r)
	r.Form = f.format()
	f.think(vars)
	if o.idle, o.unload = "load", f.unloads(); o.unload {
		o.idle = "unload"
	}
	r.Trims = true
	f.Flag("truncate", &r.Trims)
	f.Flag("shift", new(bool))
	return o, r
}

// mostDismissal bounds the size of a request that only unloads a model, in bytes.
const mostDismissal = 4096

// dismissed returns the name of the model if the body has no prompt and only asks to unload the model at once. The
// model need not be loaded for that.
func dismissed(body answer.Body) (name string, ok bool) {
	if len(body.Text) > mostDismissal || !strings.Contains(body.Text, `"keep_alive"`) {
		return "", false
	}
	f := fields{decode.Fields{Fields: wire.ReadFields(body.Text, body.Budget)}}
	f.Text("model", &name)
	for _, question := range [...]string{"prompt", "messages", "suffix"} {
		if raw, given := f.Get(question); given && raw != `""` && raw != "[]" && raw != "null" {
			return "", false
		}
	}
	return name, f.unloads() && f.Fault == nil && name != ""
}

// options decodes the sampling options. Options that say how to load a model are ignored: the server decides
// that. num_ctx is one for Ollama; here it bounds the request, within what the model was loaded with.
func (f fields) options(m *answer.Model, r *actors.Request) {
	read := func(in *wire.Fields) {
		o := decode.Fields{Fields: in}
		r.Sampling = o.Sampling(m)
		o.Texts("stop", answer.MaxStops, answer.MaxStopBytes, &r.Stop)
		o.Count("num_predict", -2, decode.AnyLength, &r.MaxTokens)
		r.MaxTokens = max(r.MaxTokens, 0) // negative numbers ask for as many as the context holds
		o.Count("num_ctx", 0, decode.AnyLength, &r.Context)
	}
	if _, ok := f.Get("options"); !ok {
		read(&wire.Fields{Budget: f.Budget})
		return
	}
	f.Object("options", `an object such as {"temperature": 0.7}`, read)
}

func (f fields) probs(r *actors.Request) {
	wanted, top := false, 0
	f.Flag("logprobs", &wanted)
	f.Count("top_logprobs", 0, answer.MaxTopProbs, &top)
	r.Sampling.LogProbs = -1
	if wanted {
		r.Sampling.LogProbs = top
	}
}

// format decodes the form of the answer.
func (f fields) format() *answer.Form {
	raw, ok := f.Get("format")
	if !ok || raw == `""` {
		return nil
	}
	if raw[0] == '{' {
		return f.Schema("format")
	}
	name := ""
	if f.Text("format", &name); name != "json" {
		f.Wrong("format", raw, `"json" or a JSON Schema`)
		return nil
	}
	return f.AnyObject("format")
}

// think sets the template's variables for whether, and how hard, the model is to think.
func (f fields) think(vars *jsontext.Object) {
	raw, ok := f.Get("think")
	if !ok {
		return
	}
	think := raw == "true"
	if !think && raw != "false" {
		level, err := f.Reader(raw).String()
		if err != nil || !slices.Contains([]string{"low", "medium", "high", "max"}, level) {
			f.Wrong("think", raw, `true, false, "low", "medium", "high" or "max"`)
			return
		}
		think = true
		decode.HowHard(vars, level)
	}
	chat.Think(vars, think)
}

// unloads decodes keep_alive, and reports whether the model is to be unloaded at once. Other values change nothing.
func (f fields) unloads() bool {
	raw, ok := f.Get("keep_alive")
	if !ok {
		return false
	}
	if seconds, ok := wire.Float(raw); ok {
		return seconds == 0
	}
	text, err := f.Reader(raw).String()
	if err == nil {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			return seconds == 0
		}
		if span, err := time.ParseDuration(text); err == nil {
			return span == 0
		}
	}
	f.Wrong("keep_alive", raw, `seconds, or a duration such as "5m"`)
	return false
}
