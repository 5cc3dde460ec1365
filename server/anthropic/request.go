package anthropic

import (
	"cmp"
	"math"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// request is a decoded request: an order, and the format of its answer.
type request struct {
	answer.Order
	most int  // most tokens of the answer
	omit bool // thinking comes without its text
}

// fields are the members of a request's body.
type fields struct{ decode.Fields }

// parse decodes a body. If answered is set, the body must bound the answer's length (max_tokens).
func parse(body answer.Body, find decode.Finder, answered bool) (request, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return request{}, in.Fault
	}
	f := fields{in}
	o := request{Order: answer.Order{Model: m, N: 1}}
	f.Terms(&o.Order)
	prompt := &chat.Input{Extra: &jsontext.Object{}}
	r := actors.Request{Chat: prompt, Thoughts: true, Sampling: m.Sampling}
	r.Sampling.Seed, r.Sampling.LogProbs = cmp.Or(m.Sampling.Seed, decode.AnySeed()), -1
	f.Number("temperature", 0, 100, &r.Sampling.Temp)
	f.Number("top_p", 0, 1, &r.Sampling.TopP)
	f.Count("top_k", -1, math.MaxInt32, &r.Sampling.TopK)
	f.Texts("stop_sequences", answer.MaxStops, answer.MaxStopBytes, &r.Stop)
	if answered {
		f.length(&o.most)
	}
	r.MaxTokens = o.most
	f.Flag("stream", &o.Stream)
	f.thinking(&o, &r, prompt.Extra)
	f.output(&r, prompt.Extra)
	r.Tools = f.tools(prompt)
	f.conversation(m, prompt)
	f.ignored()
	o.Prompts, o.Notes = []actors.Request{r}, f.Notes
	return o, f.Fault
}

func (f fields) length(most *int) {
	f.Count("max_tokens", 1, math.MaxInt32, most)
	if *most == 0 && f.Fault == nil {
		f.Fault = wire.Invalid("max_tokens", "missing_required_parameter",
			"max_tokens is missing: want the most tokens that the answer may have")
	}
}

// unthreaded is the error code with which Anthropic's API refuses a request that continues a stored conversation. The
// client's tool runner, on seeing it, goes on without stored conversations.
const unthreaded = "thread_unsupported_request"

// ignored marks fields that change no answer here as read, and refuses those that ask for missing features.
func (f fields) ignored() {
	f.Object("metadata", `an object such as {"user_id": "..."}`, func(o *wire.Fields) { o.Text("user_id", new(string)) })
	f.Absent("container", "leave it out: no code is executed")
	f.Absent("mcp_servers", "leave it out: no tools are called by the server")
	if _, ok := f.Get("thread"); ok && f.Fault == nil {
		f.Fault = wire.Invalid("thread", unthreaded,
			"thread is not supported here: no conversations are kept, send the whole of it without thread")
	}
}

// thinking decodes whether the model is to think, and its token budget.
func (f fields) thinking(o *request, r *actors.Request, vars *jsontext.Object) {
	const want = `{"type": "enabled", "budget_tokens": n}, {"type": "adaptive"} or {"type": "disabled"}`
	think := false
	f.Object("thinking", want, func(in *wire.Fields) {
		kind, display := "", ""
		in.Text("type", &kind)
		in.Text("display", &display)
		in.Count("budget_tokens", 1, math.MaxInt32, &r.MostThoughts)
		switch kind {
		case "enabled", "adaptive", "between_tools":
			think = true
		case "disabled":
		default:
			raw, _ := in.Get("type")
			in.Wrong("type", raw, want)
		}
		switch display {
		case "", "summarized":
		case "omitted":
			o.omit = true
		default:
			raw, _ := in.Get("display")
			in.Wrong("display", raw, `"summarized" or "omitted"`)
		}
	})
	chat.Think(vars, think)
}

// output decodes output_config: how hard the model is to think, and the answer's form.
func (f fields) output(r *actors.Request, vars *jsontext.Object) {
	const want = `an object such as {"format": {"type": "json_schema", "schema": {...}}}`
	f.Object("output_config", want, func(o *wire.Fields) {
		effort := ""
		switch o.Text("effort", &effort); effort {
		case "":
		case "low", "medium", "high", "xhigh", "max":
			decode.HowHard(vars, effort)
		default:
			raw, _ := o.Get("effort")
			o.Wrong("effort", raw, `"low", "medium", "high", "xhigh" or "max"`)
		}
		o.Object("format", `{"type": "json_schema", "schema": {...}}`, func(format *wire.Fields) {
			r.Form = schema(format)
		})
	})
}

func schema(f *wire.Fields) *answer.Form {
	kind := ""
	f.Text("type", &kind)
	if raw, _ := f.Get("type"); kind != "json_schema" {
		f.Wrong("type", raw, `"json_schema"`)
	}
	if _, ok := f.Get("schema"); !ok {
		decode.Fields{Fields: f}.Missing("schema", "a JSON Schema")
	}
	return decode.Fields{Fields: f}.Schema("schema")
}
