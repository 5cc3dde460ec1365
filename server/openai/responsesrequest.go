package openai

import (
	"bytes"
	"encoding/json"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// responseRequest is what a client asks for: an order, and what the answer repeats of the request. That is little: an
// answer outlives the memory that requests are counted by.
type responseRequest struct {
	answer.Order
	most     int    // tokens of the answer; 0: as many as the context holds
	effort   string // of reasoning; "" if it was not said
	format   string // the type of text.format
	name     string // of its schema
	metadata string // JSON
}

// Limits of what is repeated.
const (
	maxMetadata = 16 << 10
	maxName     = 64
)

// decodeResponse reads the body of POST /v1/responses.
func decodeResponse(body answer.Body, find ask.Finder) (responseRequest, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return responseRequest{}, f.Fault
	}
	o := responseRequest{Order: answer.Order{Model: m, N: 1, Repeats: true}, format: "text", metadata: "{}"}
	in := &chat.Input{AddGenerationPrompt: true, Extra: &jinja.Dict{}}
	r := actors.Request{Chat: in, Thoughts: true, Sampling: f.Sampling(m)}
	f.Flag("stream", &o.Stream)
	f.Count("max_output_tokens", 1, ask.AnyLength, &o.most)
	r.MaxTokens = o.most
	f.Texts("stop", answer.MaxStops, answer.MaxStopBytes, &r.Stop)
	f.reasoningEffort(&o, in.Extra)
	r.Grammar = f.textFormat(&o)
	f.include(&r)
	f.repeated(&o)
	f.stateless()
	f.responseTools(in)
	in.Messages = f.input(m)
	o.Prompts = []actors.Request{r}
	return o, f.Fault
}

// reasoningEffort tells the template whether, and how hard, the model is to think.
func (f fields) reasoningEffort(o *responseRequest, vars *jinja.Dict) {
	f.Object("reasoning", `an object such as {"effort": "low"}`, func(in *wire.Fields) {
		effort := ""
		in.Text("effort", &effort)
		in.Text("summary", new(string)) // thoughts come as they are
		known := effort
		switch effort {
		case "":
			return
		case "none":
			vars.Set("enable_thinking", jinja.Bool(false))
		case "minimal":
			known = "low"
		case "low", "medium", "high":
		case "xhigh", "max": // no template knows more than high
			known = "high"
		default:
			raw, _ := in.Get("effort")
			in.Wrong("effort", raw, `"none", "minimal", "low", "medium", "high" or "xhigh"`)
			return
		}
		if o.effort = effort; effort != "none" {
			vars.Set("reasoning_effort", jinja.Str(known))
		}
	})
}

// textFormat reads text.format: what the answer is bound to be.
func (f fields) textFormat(o *responseRequest) (form *answer.Form) {
	const want = `{"type": "text"}, {"type": "json_object"} or {"type": "json_schema", "name": "...", "schema": {...}}`
	f.Object("text", `an object such as {"format": {"type": "text"}}`, func(text *wire.Fields) {
		text.Text("verbosity", new(string)) // no template knows it
		text.Object("format", want, func(in *wire.Fields) {
			in.Text("type", &o.format)
			in.Text("name", &o.name)
			switch o.format {
			case "text":
			case "json_object":
				var err error
				if form, err = answer.JSONForm(); err != nil {
					in.Fault = wire.Invalid("type", "invalid_value", "type: %v", err)
				}
			case "json_schema":
				if _, ok := in.Get("schema"); !ok {
					ask.Fields{Fields: in}.Missing("schema", "format as "+want)
				}
				form = ask.Fields{Fields: in}.Schema("schema")
			default:
				in.Fault = wire.Invalid("type", "unsupported_value", "type is %q: want %s", wire.Shown(o.format), want)
			}
			if len(o.name) > maxName && in.Fault == nil {
				in.Fault = wire.Invalid("name", "invalid_value", "name has %d bytes: want at most %d", len(o.name), maxName)
			}
		})
	})
	return form
}

// include reads what the answer is to bring beside the text. What it cannot bring is left out, as where there is none.
func (f fields) include(r *actors.Request) {
	top := 0
	f.Count("top_logprobs", 0, answer.MaxTopProbs, &top)
	var parts []string
	const most, bytes = 16, 128
	if raw, ok := f.Get("include"); ok && raw != "[]" {
		f.Texts("include", most, bytes, &parts)
	}
	r.Sampling.LogProbs = -1
	for _, part := range parts {
		if part == "message.output_text.logprobs" {
			r.Sampling.LogProbs = top
		}
	}
	if top > 0 {
		r.Sampling.LogProbs = top
	}
}

// repeated reads what the answer only repeats.
func (f fields) repeated(o *responseRequest) {
	raw, ok := f.Get("metadata")
	if !ok {
		return
	}
	if len(raw) > maxMetadata {
		f.Fault = wire.Invalid("metadata", "invalid_value", "metadata has %d bytes: want at most %d", len(raw), maxMetadata)
		return
	}
	f.Object("metadata", `an object such as {"purpose": "a test"}`, func(*wire.Fields) {
		var line bytes.Buffer
		if json.Compact(&line, []byte(raw)) == nil {
			o.metadata = line.String()
		}
	})
}

// stateless refuses what a server would have to keep from one request to the next.
func (f fields) stateless() {
	const send = "no answers are kept here: send the whole conversation as input, its beginning is in the cache"
	f.Absent("previous_response_id", send)
	f.Absent("conversation", send)
	f.Absent("background", "no answers are kept here: read this one as it comes, with stream")
	f.Absent("prompt", "no prompts are kept here: send the text as input")
	f.Flag("store", new(bool))
}

// responseTools hands the tools to the template, in the form that templates know. What the model then writes is text.
func (f fields) responseTools(in *chat.Input) {
	raw, ok := f.Get("tools")
	if !ok {
		return
	}
	choice := "auto"
	if c, ok := f.Get("tool_choice"); ok {
		choice = c
		if text, err := f.Reader(c).String(); err == nil {
			choice = text
		}
	}
	if choice != "auto" && choice != "none" {
		f.Fault = wire.Invalid("tool_choice", "unsupported_value",
			`tool_choice is %s: a call cannot be forced here, want "auto" or "none"`, wire.Shown(choice))
		return
	}
	list, err := chat.ParseTools(raw, f.Budget)
	if err != nil {
		f.Refuse(err)
		return
	}
	all := &jinja.List{}
	for i, item := range list.Items {
		tool, fault := flatTool(i, item)
		if fault != nil {
			f.Fault = fault
			return
		}
		all.Items = append(all.Items, tool)
	}
	if choice == "auto" && len(all.Items) > 0 {
		in.Tools = all
	}
}

// flatTool is a tool as templates know it: what stands beside its type stands in "function" there.
func flatTool(i int, v jinja.Value) (*jinja.Dict, *wire.Fault) {
	d, _ := v.(*jinja.Dict)
	if kind := ask.Text(d, "type"); kind != "function" {
		return nil, wire.Invalid("tools", "unsupported_value",
			"tools[%d].type is %q: the server has no tools of its own, want functions", i, wire.Shown(kind))
	}
	if ask.Text(d, "name") == "" {
		return nil, wire.Invalid("tools", "invalid_value", "tools[%d].name: want a text", i)
	}
	function := &jinja.Dict{}
	for _, key := range [...]string{"name", "description", "parameters"} {
		if v := ask.Value(d, key); v != nil && v != (jinja.None{}) {
			function.Set(key, v)
		}
	}
	return ask.Dict("type", jinja.Str("function"), "function", function), nil
}
