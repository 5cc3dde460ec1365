package ollama

import (
	"bytes"
	"iter"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// serve answers a request of either endpoint.
func (a *api) serve(rc *fasthttp.RequestCtx, x *exchange.Exchange,
	parse func(answer.Body, decode.Finder) (request, *wire.Fault), s shape,
) *wire.Fault {
	began := time.Now()
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	if name, ok := dismissed(body); ok {
		m, fault := a.known(name)
		if fault != nil {
			return fault
		}
		_ = a.Unload(m.Name) // if the model stays loaded, that is no fault to Ollama's clients
		rc.SetContentType("application/json")
		rc.SetBody(newEncoder(m.Name, began, 0, s).idle("unload"))
		return nil
	}
	find, loading := timed(a.finder(x, answer.Write))
	o, fault := parse(body, find)
	if fault != nil {
		return fault
	}
	if o.unload {
		x.Keep(func() { _ = a.Unload(o.Model.Name) })
	}
	e := newEncoder(o.Model.Name, began, *loading, s)
	if o.idle != "" {
		rc.SetContentType("application/json")
		rc.SetBody(e.idle(o.idle))
		return nil
	}
	return a.Answer(rc, x, &o.Order, e)
}

// timed wraps a finder and measures how long it takes to find a model, which includes loading it.
func timed(find decode.Finder) (decode.Finder, *time.Duration) {
	took := new(time.Duration)
	return func(name string) (*answer.Model, *wire.Fault) {
		began := time.Now()
		defer func() { *took = time.Since(began) }()
		return find(name)
	}, took
}

// shape writes generated text in the format of one endpoint. calls are JSON already.
type shape interface {
	said(dst []byte, thought, text, calls []byte) []byte
}

// message is the shape of /api/chat.
type message struct{}

func (message) said(dst []byte, thought, text, calls []byte) []byte {
	dst = wire.AppendString(append(dst, `"message":{"role":"assistant","content":`...), text)
	if dst = appendThinking(dst, thought); len(calls) > 0 {
		dst = append(append(append(dst, `,"tool_calls":[`...), calls...), ']')
	}
	return append(dst, '}')
}

// response is the shape of /api/generate.
type response struct{}

func (response) said(dst []byte, thought, text, _ []byte) []byte {
	return appendThinking(wire.AppendString(append(dst, `"response":`...), text), thought)
}

func appendThinking(dst []byte, thought []byte) []byte {
	if len(thought) == 0 {
		return dst
	}
	return wire.AppendString(append(dst, `,"thinking":`...), thought)
}

// encoder writes the answer to one request: one object, or one on each line.
type encoder struct {
	head    []byte // {"model":…,"created_at":
	began   time.Time
	loading time.Duration // time that loading the model took
	now     func() time.Time
	shape   shape

	call answer.Part // the incomplete call of a stream; none if it has no name
}

func newEncoder(model string, began time.Time, loading time.Duration, s shape) *encoder {
	head := wire.AppendString([]byte(`{"model":`), model)
	return &encoder{head: append(head, `,"created_at":"`...), began: began, loading: loading, now: time.Now, shape: s}
}

// open appends the beginning of an object.
func (e *encoder) open(dst []byte, now time.Time) []byte {
	dst = now.UTC().AppendFormat(append(dst, e.head...), time.RFC3339Nano)
	return append(dst, `",`...)
}

// idle returns the answer to a request without a prompt.
func (e *encoder) idle(reason string) []byte {
	dst := e.shape.said(e.open(nil, e.now()), nil, nil, nil)
	return append(wire.AppendString(append(dst, `,"done":true,"done_reason":`...), reason), '}')
}

// Media implements answer.Encoder.
func (*encoder) Media() string { return "application/x-ndjson" }

// Reading implements answer.Encoder. All lines of this API are of answers: there is nothing to say it by.
func (*encoder) Reading(dst []byte, _ actors.Reading, _ time.Duration) []byte { return dst }

// Begin implements answer.Encoder.
func (*encoder) Begin(dst []byte, _ *answer.Choice) []byte { return dst }

// Part implements answer.Encoder. A call is sent once it is complete.
func (e *encoder) Part(dst []byte, c *answer.Choice) []byte {
	thought, text, calls := c.New.Said(answer.Thought), c.New.Said(answer.Speech), e.calls(&c.New)
	if len(thought)+len(text)+len(calls)+len(c.New.Probs) == 0 {
		return dst
	}
	dst = e.shape.said(e.open(dst, e.now()), thought, text, calls)
	if c.Probs {
		for piece := range probs(c) {
			dst = append(dst, piece...)
		}
	}
	return append(dst, `,"done":false}`+"\n"...)
}

// End implements answer.Encoder.
func (e *encoder) End(dst []byte, c *answer.Choice) []byte {
	now := e.now()
	dst = e.shape.said(e.open(dst, now), nil, nil, e.complete(nil))
	return append(e.done(dst, c, now), '\n')
}

// Close implements answer.Encoder.
func (*encoder) Close(dst []byte, _ []*answer.Choice) []byte { return dst }

// Fault implements answer.Encoder.
func (*encoder) Fault(dst []byte, f *wire.Fault) []byte { return append(appendFault(dst, f), '\n') }

// Whole implements answer.Encoder.
func (e *encoder) Whole(choices []*answer.Choice) iter.Seq[[]byte] {
	c, now := choices[0], e.now() // there are no others in this dialect
	return func(yield func([]byte) bool) {
		one := encoder{}
		calls := one.complete(one.calls(&c.New))
		if !yield(e.shape.said(e.open(nil, now), c.New.Said(answer.Thought), c.New.Said(answer.Speech), calls)) {
			return
		}
		if c.Probs {
			for piece := range probs(c) {
				if !yield(piece) {
					return
				}
			}
		}
		yield(e.done(nil, c, now))
	}
}

// calls returns the JSON of calls that are complete by now, and remembers the incomplete one.
func (e *encoder) calls(n *answer.News) (dst []byte) {
	for i := range n.Parts {
		p := &n.Parts[i]
		if p.Kind != answer.Call || p.Name != "" {
			dst = e.complete(dst)
		}
		switch {
		case p.Kind != answer.Call:
		case p.Name != "":
			e.call = *p
			e.call.Text = bytes.Clone(p.Text)
		default:
			e.call.Text = append(e.call.Text, p.Text...)
		}
	}
	return dst
}

// complete appends the JSON of the remembered call, if there is one.
func (e *encoder) complete(dst []byte) []byte {
	p := &e.call
	if p.Name == "" {
		return dst
	}
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = wire.AppendString(append(dst, `{"id":`...), p.ID)
	dst = strconv.AppendInt(append(dst, `,"function":{"index":`...), int64(p.Call), 10)
	dst = wire.AppendString(append(dst, `,"name":`...), p.Name)
	dst = append(wire.AppendObject(append(dst, `,"arguments":`...), p.Text), "}}"...)
	e.call = answer.Part{}
	return dst
}

// done appends how the answer ended, its token counts and its durations in nanoseconds.
func (e *encoder) done(dst []byte, c *answer.Choice, now time.Time) []byte {
	reason := "stop"
	if c.Finish == actors.Length {
		reason = "length"
	}
	dst = wire.AppendString(append(dst, `,"done":true,"done_reason":`...), reason)
	if c.IDs != nil {
		dst = wire.AppendTokens(append(dst, `,"context":`...), c.IDs)
	}
	for _, x := range [...]struct {
		name string
		n    int64
	}{
		{"total_duration", now.Sub(e.began).Nanoseconds()}, {"load_duration", e.loading.Nanoseconds()},
		{"prompt_eval_count", int64(c.Usage.Prompt)}, {"prompt_eval_duration", c.Usage.Prefill.Nanoseconds()},
		{"eval_count", int64(c.Usage.Generated)}, {"eval_duration", c.Usage.Decode.Nanoseconds()},
	} {
		dst = append(append(append(dst, `,"`...), x.name...), `":`...)
		dst = strconv.AppendInt(dst, x.n, 10)
	}
	if c.Timed() {
		dst = wire.AppendTimings(append(dst, `,"timings":`...), c.Timings())
	}
	return append(dst, '}')
}

// probs yields the log-probabilities of the tokens since the last part, a token at a time.
func probs(c *answer.Choice) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dst := []byte(`,"logprobs":[`)
		for i, p := range c.New.Probs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = wire.AppendProb(dst, c.Piece(p.ID), p.LogProb)
			for j, t := range p.Top {
				open := `,"top_logprobs":[`
				if j > 0 {
					open = ","
				}
				dst = append(wire.AppendProb(append(dst, open...), c.Piece(t.ID), t.LogProb), '}')
			}
			if len(p.Top) > 0 {
				dst = append(dst, ']')
			}
			if !yield(append(dst, '}')) {
				return
			}
			dst = dst[:0]
		}
		yield(append(dst, ']'))
	}
}
