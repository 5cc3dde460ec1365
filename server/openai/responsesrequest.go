package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// responseRequest is a decoded request: an order, and the fields that the answer repeats. Only small ones are
// repeated, since an answer outlives the memory that its request is charged for.
type responseRequest struct {
	answer.Order
	most     int    // tokens of the answer; 0: as many as the context holds
	effort   string // reasoning effort, "low" say; "" if the request does not state it
	format   string // the type of text.format
	name     string // name of the schema in text.format
	metadata string // JSON
	tools    answer.Toolbox
	// namespaces are the namespaces that tools were sent in, by the tools' names.
	namespaces map[string]string
	previous   string // id of the answer whose conversation it continues
	store      bool   // later requests may continue this conversation
	items      string // the conversation's items up to the input, as JSON without the list's brackets
}

// past finds the items of a stored conversation by the id of the answer that ended it.
type past func(id string) (items string, ok bool)

// Limits of repeated fields.
const (
	maxMetadata = 16 << 10
	maxName     = 64
)

// decodeResponse decodes the body of POST /v1/responses.
func decodeResponse(body answer.Body, find decode.Finder, before past, lasts bool) (responseRequest, *wire.Fault) {
	f, m := readRequest(body, find)
	if m == nil {
		return responseRequest{}, f.Fault
	}
	o := responseRequest{Order: answer.Order{Model: m, N: 1, Repeats: true}, format: "text", metadata: "{}", store: true}
	f.Terms(&o.Order)
	in := &chat.Input{AddGenerationPrompt: true, Extra: &jsontext.Object{}}
	r := actors.Request{Chat: in, Thoughts: true, Sampling: f.Sampling(m)}
	f.Flag("stream", &o.Stream)
	f.Count("max_output_tokens", 1, decode.AnyLength, &o.most)
	r.MaxTokens = o.most
	f.Texts("stop", answer.MaxStops, answer.MaxStopBytes, &r.Stop)
	f.reasoningEffort(&o, in.Extra)
	r.Form = f.textFormat(&o)
	f.include(&r)
	f.repeated(&o)
	f.Flag("store", &o.store)
	f.stateless(&o, lasts)
	f.goesOn(&o, before)
	r.Tools = f.responseTools(&o, in)
	in.Messages = f.input(m, &o)
	o.Prompts, o.Notes = []actors.Request{r}, f.Notes
	return o, f.Fault
}

// reasoningEffort sets the template's variables for whether, and how hard, the model is to think.
func (f fields) reasoningEffort(o *responseRequest, vars *jsontext.Object) {
	f.Object("reasoning", `an object such as {"effort": "low"}`, func(in *wire.Fields) {
		in.Text("summary", new(string)) // ignored: thoughts are sent as they are
		o.effort = decode.Fields{Fields: in}.Effort("effort", vars)
	})
}

// textFormat decodes text.format, the form of the answer.
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
				form = decode.Fields{Fields: in}.AnyObject("type")
			case "json_schema":
				if _, ok := in.Get("schema"); !ok {
					decode.Fields{Fields: in}.Missing("schema", "format as "+want)
				}
				form = decode.Fields{Fields: in}.Schema("schema")
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

// include decodes which additions the answer is to have. Additions that this server lacks are ignored.
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

// repeated decodes fields that the answer only repeats.
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

// stateless refuses fields that need a store of conversations beyond previous_response_id. background needs answers
// that last.
func (f fields) stateless(o *responseRequest, lasts bool) {
	if o.Store = o.store && lasts; lasts {
		f.Flag("background", &o.Background)
	} else {
		f.Absent("background", "answers are not computed for later: start the server with --state, or read this one as it "+
			"comes, with stream")
	}
	if o.Background && !o.store && f.Fault == nil {
		f.Fault = wire.Invalid("background", "invalid_value", "background is true, and store is false: an answer that is computed "+
			"for later has to be stored")
	}
	f.Absent("conversation", "send the whole conversation as input, or the previous_response_id of its last answer")
	f.Absent("prompt", "no prompts are kept here: send the text as input")
}

// goesOn finds the conversation that the request continues.
func (f fields) goesOn(o *responseRequest, before past) {
	if f.Text("previous_response_id", &o.previous); o.previous == "" || f.Fault != nil {
		return
	}
	var ok bool
	if o.items, ok = before(o.previous); !ok {
		f.Fault = wire.Invalid("previous_response_id", "previous_response_not_found", "previous_response_id is %q: no such answer of "+
			"yours is kept (any more): send the whole conversation as input, its beginning is in the cache", wire.Shown(o.previous))
	}
}

// responseTools decodes tools, tool_choice and parallel_tool_calls. In this API a function's members stand beside its
// type; templates read them in an inner object, "function". Tools that are no functions, such as a search by OpenAI's
// servers, are left out: clients always send them. A namespace stands for the functions in it, whose calls name it.
func (f fields) responseTools(r *responseRequest, in *chat.Input) *answer.Tools {
	box := &r.tools
	f.ToolChoice(box, false)
	all := jsontext.List{}
	f.EachTool(func(place, namespace string, o *jsontext.Object) {
		switch kind := o.Text("type"); {
		case kind == "" && namespace == "":
			if f.Fault == nil {
				f.Fault = wire.Invalid(place+".type", "missing_required_parameter", `%s.type is missing: want "function"`, place)
			}
			return
		case kind != "function":
			f.LeftOut(kind)
			return
		}
		if namespace != "" {
			if r.namespaces == nil {
				r.namespaces = map[string]string{}
			}
			r.namespaces[strings.Clone(o.Text("name"))] = strings.Clone(namespace) // the body is given back
		}
		f.Tool(box, o, place, "parameters")
		if box.Allows(o.Text("name")) {
			all = append(all, decode.Declared(o.Get("name"), o.Get("description"), o.Get("parameters")))
		}
	})
	if box.Shown() {
		in.Tools = all
	}
	return f.Callable(box)
}
