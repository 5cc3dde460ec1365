package openai

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// respond serves POST /v1/responses.
func (a *api) respond(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	o, fault := decodeResponse(body, a.finder(x, answer.Write))
	if fault != nil {
		return fault
	}
	return a.Answer(rc, x, &o.Order, newResponse(&o, x.ID, time.Now().Unix()))
}

// response spells an answer as items: reasoning, and a message. Of a stream it keeps what the end repeats.
type response struct {
	id   string
	head []byte // of the object, as far as it is always the same

	next  int    // number of the next event
	items []byte // that are complete
	index int    // of the open item, or of the next one
	open  item   // kind of the open item
	text  []byte // of the open item, so far
	probs []byte // of tokens whose text has not come, spelled; the end does not repeat those that were sent
}

// item is a kind of what an answer is made of.
type item int

const (
	none item = iota
	reasoning
	speech
)

func newResponse(o *responseRequest, id string, created int64) *response {
	p := &o.Prompts[0].Sampling
	h := append(append([]byte(`{"id":"resp_`), id...), `","object":"response","created_at":`...)
	h = strconv.AppendInt(h, created, 10)
	h = wire.AppendString(append(h, `,"background":false,"error":null,"instructions":null,"model":`...), o.Model.Name)
	h = append(h, `,"max_output_tokens":`...)
	if o.most > 0 {
		h = strconv.AppendInt(h, int64(o.most), 10)
	} else {
		h = append(h, "null"...)
	}
	h = append(append(h, `,"metadata":`...), o.metadata...)
	h = append(h, `,"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":`...)
	h = append(appendOrNull(h, o.effort), `,"summary":null},"store":false,"temperature":`...)
	h = append(strconv.AppendFloat(h, float64(p.Temp), 'g', -1, 32), `,"text":{"format":{"type":`...)
	h = wire.AppendString(h, o.format)
	if o.name != "" {
		h = wire.AppendString(append(h, `,"name":`...), o.name)
	}
	h = strconv.AppendFloat(append(h, `}},"tool_choice":"auto","tools":[],"top_p":`...), float64(p.TopP), 'g', -1, 32)
	return &response{id: id, head: append(h, `,"truncation":"disabled"`...)}
}

// event opens one, as far as its number.
func (e *response) event(dst []byte, kind string) []byte {
	dst = append(append(append(dst, "event: "...), kind...), "\ndata: {\"type\":\""...)
	dst = strconv.AppendInt(append(append(dst, kind...), `","sequence_number":`...), int64(e.next), 10)
	e.next++
	return dst
}

const endOfEvent = "}\n\n"

// Media implements answer.Encoder.
func (*response) Media() string { return "text/event-stream" }

// Begin implements answer.Encoder.
func (e *response) Begin(dst []byte, _ *answer.Choice) []byte {
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		dst = append(append(e.event(dst, kind), `,"response":`...), e.head...)
		dst = append(dst, `,"status":"in_progress","incomplete_details":null,"output":[],"usage":null}`...)
		dst = append(dst, endOfEvent...)
	}
	return dst
}

// Part implements answer.Encoder.
func (e *response) Part(dst []byte, c *answer.Choice) []byte {
	thought, said := c.New.Said(answer.Thought), c.New.Said(answer.Speech)
	if len(thought) > 0 {
		dst = e.delta(e.enter(dst, reasoning), "response.reasoning_text", thought)
	}
	if e.open != reasoning || len(said) > 0 { // nobody asks for those of thoughts
		for i := range c.New.Probs {
			e.probs = appendProb(comma(e.probs), c, &c.New.Probs[i])
		}
	}
	if len(said) > 0 {
		dst = e.delta(e.enter(dst, speech), "response.output_text", said)
	}
	return dst
}

// comma separates what comes from what is there.
func comma(list []byte) []byte {
	if len(list) > 0 {
		return append(list, ',')
	}
	return list
}

// enter opens an item of a kind, if it is not the open one.
func (e *response) enter(dst []byte, kind item) []byte {
	if e.open == kind {
		return dst
	}
	dst = e.leave(dst, "completed")
	e.open = kind
	dst = e.place(e.event(dst, "response.output_item.added"), false)
	dst = e.item(append(dst, `,"item":`...), "in_progress")
	dst = e.place(append(e.event(append(dst, endOfEvent...), "response.content_part.added"), e.itemID()...), true)
	return append(e.content(append(dst, `,"part":`...)), endOfEvent...)
}

// delta says what came of the open item.
func (e *response) delta(dst []byte, kind string, text []byte) []byte {
	dst = e.place(append(e.event(dst, kind+".delta"), e.itemID()...), true)
	dst = wire.AppendString(append(dst, `,"delta":`...), text)
	if e.open == speech {
		dst = append(append(append(dst, `,"logprobs":[`...), e.probs...), ']')
		e.probs = e.probs[:0]
	}
	e.text = append(e.text, text...)
	return append(dst, endOfEvent...)
}

// leave closes the open item, if there is one, with all of it.
func (e *response) leave(dst []byte, status string) []byte {
	if e.open == none {
		return dst
	}
	kind := "response.reasoning_text.done"
	if e.open == speech {
		kind = "response.output_text.done"
	}
	dst = e.place(append(e.event(dst, kind), e.itemID()...), true)
	dst = wire.AppendString(append(dst, `,"text":`...), e.text)
	if e.open == speech {
		dst = append(dst, `,"logprobs":[]`...)
	}
	dst = e.place(append(e.event(append(dst, endOfEvent...), "response.content_part.done"), e.itemID()...), true)
	dst = e.content(append(dst, `,"part":`...))
	dst = e.place(e.event(append(dst, endOfEvent...), "response.output_item.done"), false)
	from := len(comma(e.items))
	e.items = e.item(comma(e.items), status)
	dst = append(append(append(dst, `,"item":`...), e.items[from:]...), endOfEvent...)
	e.open, e.text = none, e.text[:0]
	e.index++
	return dst
}

func (e *response) itemID() string { return `,"item_id":"` + e.name() + `"` }

// name is the id of the open item.
func (e *response) name() string {
	prefix := "msg_"
	if e.open == reasoning {
		prefix = "rs_"
	}
	return prefix + e.id + "_" + strconv.Itoa(e.index)
}

// place says where the open item, or its only content, is.
func (e *response) place(dst []byte, content bool) []byte {
	dst = strconv.AppendInt(append(dst, `,"output_index":`...), int64(e.index), 10)
	if content {
		dst = append(dst, `,"content_index":0`...)
	}
	return dst
}

// content spells what the open item says.
func (e *response) content(dst []byte) []byte {
	if e.open == reasoning {
		return append(wire.AppendString(append(dst, `{"type":"reasoning_text","text":`...), e.text), '}')
	}
	dst = wire.AppendString(append(dst, `{"type":"output_text","text":`...), e.text)
	return append(dst, `,"annotations":[],"logprobs":[]}`...)
}

// item spells the open one; one in progress has no content.
func (e *response) item(dst []byte, status string) []byte {
	kind := `","type":"message","role":"assistant","status":"`
	if e.open == reasoning {
		kind = `","type":"reasoning","summary":[],"status":"`
	}
	dst = append(append(append(append(dst, `{"id":"`...), e.name()...), kind...), status...)
	if dst = append(dst, `","content":[`...); status != "in_progress" {
		dst = e.content(dst)
	}
	return append(dst, "]}"...)
}

// End implements answer.Encoder. There is always a message.
func (e *response) End(dst []byte, c *answer.Choice) []byte {
	status := statusOf(c)
	if e.open != speech {
		dst = e.enter(dst, speech)
	}
	dst = e.leave(dst, status)
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
		dst := append(slices.Clone(e.head), `,"output":[`...)
		one := response{id: e.id}
		if thought := c.New.Said(answer.Thought); len(thought) > 0 {
			one.open, one.text = reasoning, thought
			if !yield(append(one.item(dst, "completed"), ',')) {
				return
			}
			dst, one.index = dst[:0], 1
		}
		one.open, one.text = speech, c.New.Said(answer.Speech)
		dst = one.item(dst, statusOf(c))
		const behind = "]}]}" // the list of log-probabilities, which is the last of the item
		for i := range c.New.Probs {
			if i == 0 {
				dst = dst[:len(dst)-len(behind)]
			} else {
				dst = append(dst, ',')
			}
			if !yield(appendProb(dst, c, &c.New.Probs[i])) {
				return
			}
			dst = dst[:0]
		}
		if len(c.New.Probs) > 0 {
			dst = append(dst, behind...)
		}
		yield(appendEnd(dst, c))
	}
}

// statusOf says whether an answer ended by itself.
func statusOf(c *answer.Choice) string {
	if c.Finish == actors.Length {
		return "incomplete"
	}
	return "completed"
}

// appendEnd ends the object behind its items.
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
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":`...)
	dst = strconv.AppendInt(dst, int64(c.Usage.Prompt+c.Usage.Generated), 10)
	return append(dst, "}}"...)
}
