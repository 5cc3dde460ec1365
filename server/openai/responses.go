package openai

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// respond serves POST /v1/responses.
func (a *api) respond(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	o, fault := a.readResponse(rc, x)
	if fault != nil {
		return fault
	}
	id := "resp_" + x.ID
	o.store = o.store && a.past.begin(id, x.Client, o.items)
	o.items = ""
	e := newResponse(&o, x.ID, x.At.Unix())
	if o.Background && !o.Stream && !a.Served(x) {
		return a.later(rc, x, &o, e)
	}
	if o.store {
		a.keep(rc, x, &o, e, id)
		x.Keep(func() { a.past.drop(id) }) // a stream may fail, or lose its client, after Answer has returned
	}
	return a.Answer(rc, x, &o.Order, e)
}

// responsesPath is where responses are asked for; below it lies each by its id.
const responsesPath = "/v1/responses"

// forget serves DELETE /v1/responses/{id}: the conversation that an answer ended is not kept any longer.
func (a *api) forget(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	id := strings.TrimPrefix(string(rc.Path()), responsesPath+"/")
	was := a.Forget(x, strings.TrimPrefix(id, "resp_"))
	if !a.past.forget(id, x.Client) && !was {
		return wire.Refused(fasthttp.StatusNotFound, "not_found", "%q: no such answer of yours is kept (any more)", wire.Shown(id))
	}
	rc.SetContentType("application/json")
	rc.SetBody(append(wire.AppendString([]byte(`{"id":`), id), `,"object":"response","deleted":true}`...))
	return nil
}

// before returns a function that finds earlier conversations of the exchange's client.
func (a *api) before(x *exchange.Exchange) past {
	return func(id string) (items string, ok bool) {
		if items, ok = a.past.find(id, x.Client); ok {
			return items, ok
		}
		p := a.Stored(x, strings.TrimPrefix(id, "resp_"))
		if p == nil || p.Told == nil || p.Told.Items == "" {
			return "", false
		}
		return p.Told.Items, true
	}
}

func (a *api) readResponse(rc *fasthttp.RequestCtx, x *exchange.Exchange) (responseRequest, *wire.Fault) {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return responseRequest{}, fault
	}
	body.Kept = a.shownBefore(x)
	return decodeResponse(body, a.finder(x, answer.Write), a.before(x), a.Lasts())
}

// countResponse serves POST /v1/responses/input_tokens: the number of tokens of a response's prompt.
func (a *api) countResponse(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	o, fault := a.readResponse(rc, x)
	if fault != nil {
		return fault
	}
	tokens, fault := a.Count(x, &o.Order)
	if fault != nil {
		return fault
	}
	rc.SetContentType("application/json")
	dst := strconv.AppendInt([]byte(`{"object":"response.input_tokens","input_tokens":`), int64(tokens), 10)
	rc.SetBody(append(dst, '}'))
	return nil
}

// response writes an answer as items: reasoning, messages, calls. While it streams, it keeps the complete items, which
// the last event repeats.
type response struct {
	id     string
	head   []byte            // beginning of the response object, the same in all events
	within map[string]string // namespaces of tools, by the tools' names
	// keep stores the items of the answer, and the object, when it is complete; nil: they are not stored.
	keep func(items, object []byte)
	tell func(object []byte) // says what can be asked for until then; nil: nothing can

	next  int         // number of the next event
	items []byte      // complete items, as JSON without the list's brackets
	index int         // output_index of the open item, or of the next one
	open  item        // kind of the open item
	call  answer.Part // the part with the call's name and id, if the open item is a call
	text  []byte      // text of the open item so far
	probs []byte      // JSON of the log-probabilities that were not sent yet; the last event does not repeat them
}

// item is a kind of item of an answer.
type item int

const (
	none item = iota
	reasoning
	speech
	call
)

// spelling holds the differences between the kinds of items.
var spelling = [...]struct{ id, object, grows, said string }{
	reasoning: {"rs_", `"type":"reasoning","summary":[]`, "response.reasoning_text", "text"},
	speech:    {"msg_", `"type":"message","role":"assistant"`, "response.output_text", "text"},
	call:      {"fc_", `"type":"function_call"`, "response.function_call_arguments", "arguments"},
}

func newResponse(o *responseRequest, id string, created int64) *response {
	p := &o.Prompts[0].Sampling
	h := append(append([]byte(`{"id":"resp_`), id...), `","object":"response","created_at":`...)
	h = strconv.AppendInt(h, created, 10)
	h = strconv.AppendBool(append(h, `,"background":`...), o.Background)
	h = wire.AppendString(append(h, `,"error":null,"instructions":null,"model":`...), o.Model.Name)
	h = append(h, `,"max_output_tokens":`...)
	if o.most > 0 {
		h = strconv.AppendInt(h, int64(o.most), 10)
	} else {
		h = append(h, "null"...)
	}
	h = append(append(h, `,"metadata":`...), o.metadata...)
	h = strconv.AppendBool(append(h, `,"parallel_tool_calls":`...), !o.tools.Single)
	h = append(appendOrNull(append(h, `,"previous_response_id":`...), o.previous), `,"reasoning":{"effort":`...)
	h = strconv.AppendBool(append(appendOrNull(h, o.effort), `,"summary":null},"store":`...), o.store)
	h = append(h, `,"temperature":`...)
	h = append(strconv.AppendFloat(h, float64(p.Temp), 'g', -1, 32), `,"text":{"format":{"type":`...)
	h = wire.AppendString(h, o.format)
	if o.name != "" {
		h = wire.AppendString(append(h, `,"name":`...), o.name)
	}
	h = appendToolChoice(append(h, `}},"tool_choice":`...), &o.tools)
	h = strconv.AppendFloat(append(h, `,"tools":[],"top_p":`...), float64(p.TopP), 'g', -1, 32)
	return &response{id: id, within: o.namespaces, head: append(h, `,"truncation":"disabled"`...)}
}

func appendToolChoice(dst []byte, box *answer.Toolbox) []byte {
	if box.Allowed != nil {
		mode := `auto`
		if box.Choice == answer.SomeTool {
			mode = `required`
		}
		dst = append(append(append(dst, `{"type":"allowed_tools","mode":"`...), mode...), `","tools":[`...)
		for i, name := range box.Allowed {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendString(append(dst, `{"type":"function","name":`...), name), '}')
		}
		return append(dst, `]}`...)
	}
	switch box.Choice {
	case answer.NoTool:
		return append(dst, `"none"`...)
	case answer.SomeTool:
		return append(dst, `"required"`...)
	case answer.OneTool:
		return append(wire.AppendString(append(dst, `{"type":"function","name":`...), box.Name), '}')
	}
	return append(dst, `"auto"`...)
}

// event appends the beginning of an event, up to its sequence number.
func (e *response) event(dst []byte, kind string) []byte {
	dst = append(append(append(dst, "event: "...), kind...), "\ndata: {\"type\":\""...)
	dst = strconv.AppendInt(append(append(dst, kind...), `","sequence_number":`...), int64(e.next), 10)
	e.next++
	return dst
}

const endOfEvent = "}\n\n"

// Media implements answer.Encoder.
func (*response) Media() string { return "text/event-stream" }

// Reading implements answer.Encoder.
func (*response) Reading(dst []byte, r actors.Reading, _ time.Duration) []byte {
	return wire.AppendReading(dst, r.Done, r.Total)
}

// Begin implements answer.Encoder.
func (e *response) Begin(dst []byte, _ *answer.Choice) []byte {
	object := e.underway()
	if e.tell != nil {
		e.tell(object)
	}
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		dst = append(append(e.event(dst, kind), `,"response":`...), object...)
		dst = append(dst, endOfEvent...)
	}
	return dst
}

// underway returns the object of an answer that is being computed.
func (e *response) underway() []byte {
	return append(slices.Clone(e.head), underway...)
}

const underway = `,"status":"in_progress","incomplete_details":null,"output":[],"usage":null}`

// whole returns the object of an answer that is complete.
func (e *response) whole(items []byte, c *answer.Choice) []byte {
	return appendEnd(append(append(slices.Clone(e.head), `,"output":[`...), items...), c)
}

// Part implements answer.Encoder.
func (e *response) Part(dst []byte, c *answer.Choice) []byte {
	if e.open <= speech && (e.open != reasoning || len(c.New.Said(answer.Speech)) > 0) { // messages alone have them
		for i := range c.New.Probs {
			e.probs = appendProb(comma(e.probs), c, &c.New.Probs[i])
		}
	}
	for i := range c.New.Parts {
		p := &c.New.Parts[i]
		if kind := kindOf(p); kind != e.open || p.Name != "" {
			dst = e.enter(e.leave(dst, "completed"), kind, p)
		}
		if len(p.Text) > 0 {
			dst = e.delta(dst, p.Text)
		}
	}
	return dst
}

func kindOf(p *answer.Part) item {
	switch p.Kind {
	case answer.Thought:
		return reasoning
	case answer.Call:
		return call
	}
	return speech
}

// comma appends a comma to a list that has entries.
func comma(list []byte) []byte {
	if len(list) > 0 {
		return append(list, ',')
	}
	return list
}

// enter appends the events that begin an output item: thoughts, a message or a call. p is the part of the answer that
// the item begins with; a call has its name and id from there.
func (e *response) enter(dst []byte, kind item, p *answer.Part) []byte {
	e.open, e.call = kind, *p
	dst = append(e.event(dst, "response.output_item.added"), e.place(false)...)
	dst = append(e.item(append(dst, `,"item":`...), "in_progress"), endOfEvent...)
	if kind == call {
		return dst
	}
	dst = append(e.event(dst, "response.content_part.added"), e.place(true)...)
	return append(e.content(append(dst, `,"part":`...)), endOfEvent...)
}

// delta appends an event with new text of the open item.
func (e *response) delta(dst []byte, text []byte) []byte {
	dst = append(e.event(dst, spelling[e.open].grows+".delta"), e.place(true)...)
	dst = wire.AppendString(append(dst, `,"delta":`...), text)
	if e.open == speech {
		dst = append(append(append(dst, `,"logprobs":[`...), e.probs...), ']')
		e.probs = e.probs[:0]
	}
	e.text = append(e.text, text...)
	return append(dst, endOfEvent...)
}

// leave closes the open item, if there is one, with its whole content.
func (e *response) leave(dst []byte, status string) []byte {
	if e.open == none {
		return dst
	}
	s := &spelling[e.open]
	dst = append(e.event(dst, s.grows+".done"), e.place(true)...)
	dst = wire.AppendString(append(append(append(dst, `,"`...), s.said...), `":`...), e.text)
	switch e.open {
	case speech:
		dst = append(dst, `,"logprobs":[]`...)
	case call:
		dst = wire.AppendString(append(dst, `,"name":`...), e.call.Name)
	}
	dst = append(dst, endOfEvent...)
	if e.open != call {
		dst = append(e.event(dst, "response.content_part.done"), e.place(true)...)
		dst = append(e.content(append(dst, `,"part":`...)), endOfEvent...)
	}
	from := len(comma(e.items))
	e.items = e.item(comma(e.items), status)
	dst = append(e.event(dst, "response.output_item.done"), e.place(false)...)
	dst = append(append(append(dst, `,"item":`...), e.items[from:]...), endOfEvent...)
	e.open, e.text = none, e.text[:0]
	e.index++
	return dst
}

// name returns the id of the open item.
func (e *response) name() string { return spelling[e.open].id + e.id + "_" + strconv.Itoa(e.index) }

// place returns the JSON members with the position of the open item, and, if within is set, that of its content.
func (e *response) place(within bool) string {
	at := `,"output_index":` + strconv.Itoa(e.index)
	switch {
	case !within:
		return at
	case e.open == call:
		return `,"item_id":"` + e.name() + `"` + at
	}
	return `,"item_id":"` + e.name() + `"` + at + `,"content_index":0`
}

// content appends the content of the open item.
func (e *response) content(dst []byte) []byte {
	if e.open == reasoning {
		return append(wire.AppendString(append(dst, `{"type":"reasoning_text","text":`...), e.text), '}')
	}
	dst = wire.AppendString(append(dst, `{"type":"output_text","text":`...), e.text)
	return append(dst, `,"annotations":[],"logprobs":[]}`...)
}

// item appends the open item; one in progress has no content.
func (e *response) item(dst []byte, status string) []byte {
	dst = append(append(append(append(dst, `{"id":"`...), e.name()...), `",`...), spelling[e.open].object...)
	dst = append(append(append(dst, `,"status":"`...), status...), '"')
	if e.open == call {
		dst = wire.AppendString(append(dst, `,"call_id":`...), e.call.ID)
		dst = wire.AppendString(append(dst, `,"name":`...), e.call.Name)
		if namespace := e.within[e.call.Name]; namespace != "" {
			dst = wire.AppendString(append(dst, `,"namespace":`...), namespace)
		}
		return append(wire.AppendString(append(dst, `,"arguments":`...), e.text), '}')
	}
	if dst = append(dst, `,"content":[`...); status != "in_progress" {
		dst = e.content(dst)
	}
	return append(dst, "]}"...)
}

// End implements answer.Encoder. An answer without calls ends with a message, which may be empty.
func (e *response) End(dst []byte, c *answer.Choice) []byte {
	status := statusOf(c)
	if e.open != speech && c.Calls == 0 {
		dst = e.enter(e.leave(dst, "completed"), speech, &answer.Part{})
	}
	dst = e.leave(dst, status)
	if e.keep != nil {
		e.keep(e.items, e.whole(e.items, c))
	}
	dst = append(append(e.event(dst, "response."+status), `,"response":`...), e.head...)
	dst = append(append(dst, `,"output":[`...), e.items...)
	return append(appendEnd(dst, c), endOfEvent...)
}

// Close implements answer.Encoder.
func (*response) Close(dst []byte, _ []*answer.Choice) []byte { return dst }

// Fault implements answer.Encoder.
func (e *response) Fault(dst []byte, f *wire.Fault) []byte {
	code := f.Code
	if f.Ours() {
		code = "server_error"
	}
	dst = strconv.AppendInt(append(dst, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":"...), int64(e.next), 10)
	dst = appendOrNull(append(dst, `,"code":`...), code)
	dst = wire.AppendString(append(dst, `,"message":`...), f.Text)
	return append(appendOrNull(append(dst, `,"param":`...), f.Param), endOfEvent...)
}

// Whole implements answer.Encoder.
func (e *response) Whole(choices []*answer.Choice) iter.Seq[[]byte] {
	c := choices[0] // there are no others at this endpoint
	return func(yield func([]byte) bool) {
		parts := c.New.Parts
		if n := len(parts); c.Calls == 0 && (n == 0 || parts[n-1].Kind != answer.Speech) {
			parts = append(slices.Clone(parts), answer.Part{}) // without calls, there is a message
		}
		dst, one, probs := append(slices.Clone(e.head), `,"output":[`...), response{id: e.id, within: e.within}, c.New.Probs
		var kept []byte
		for i := range parts {
			status := "completed"
			if one.index = i; i == len(parts)-1 {
				status = statusOf(c)
			}
			one.open, one.call, one.text = kindOf(&parts[i]), parts[i], parts[i].Text
			if e.keep != nil {
				kept = one.item(comma(kept), status)
			}
			dst = one.item(dst, status)
			if one.open == speech && len(probs) > 0 {
				if !yield(dst[:len(dst)-len(behindProbs)]) || !each(c, probs, yield) {
					return
				}
				dst, probs = append(dst[:0], behindProbs...), nil
			}
			if i < len(parts)-1 {
				dst = append(dst, ',')
			}
			if !yield(dst) {
				return
			}
			dst = dst[:0]
		}
		if e.keep != nil {
			e.keep(kept, e.whole(kept, c))
		}
		yield(appendEnd(dst, c))
	}
}

// behindProbs is the JSON that follows the log-probabilities of a message, which are its last member.
const behindProbs = "]}]}"

// each yields log-probabilities as JSON, a token at a time, and reports whether the rest of the answer is wanted.
func each(c *answer.Choice, probs []answer.Prob, yield func([]byte) bool) bool {
	var dst []byte
	for i := range probs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst = appendProb(dst, c, &probs[i]); !yield(dst) {
			return false
		}
		dst = dst[:0]
	}
	return true
}

// statusOf returns completed for an answer that ended by itself, else incomplete.
func statusOf(c *answer.Choice) string {
	if c.Finish == actors.Length {
		return "incomplete"
	}
	return "completed"
}

// appendEnd appends the end of the object after its items.
func appendEnd(dst []byte, c *answer.Choice) []byte {
	status, why := statusOf(c), "null"
	if status == "incomplete" {
		why = `{"reason":"max_output_tokens"}`
	}
	dst = wire.AppendString(append(dst, `],"status":`...), status)
	dst = append(append(append(dst, `,"incomplete_details":`...), why...), `,"usage":{"input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(c.Usage.Prompt), 10)
	dst = strconv.AppendInt(append(dst, `,"input_tokens_details":{"cached_tokens":`...), int64(c.Usage.Cached), 10)
	dst = strconv.AppendInt(append(dst, `},"output_tokens":`...), int64(c.Usage.Generated), 10)
	dst = strconv.AppendInt(append(dst, `,"output_tokens_details":{"reasoning_tokens":`...), int64(c.Pondered), 10)
	dst = strconv.AppendInt(append(dst, `},"total_tokens":`...), int64(c.Usage.Prompt+c.Usage.Generated), 10)
	dst = append(dst, '}')
	if c.Timed() {
		dst = wire.AppendTimings(append(dst, `,"timings":`...), c.Timings())
	}
	return append(dst, '}')
}
