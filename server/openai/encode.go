package openai

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// shape writes a choice in the format of one endpoint: one element of "choices".
type shape interface {
	first(dst []byte, c *answer.Choice) []byte            // stream: before the first text; may be nothing
	part(dst []byte, c *answer.Choice) []byte             // stream: what came since the last part
	last(dst []byte, c *answer.Choice) []byte             // stream: the end
	whole(dst []byte, c *answer.Choice, more more) []byte // no stream: all of it
}

// more is called between the tokens of a long text. It may send the bytes so far and return an empty buffer, and
// reports whether the rest is wanted.
type more func(dst []byte) (rest []byte, ok bool)

// goOn is the more of a text that is written whole.
func goOn(dst []byte) ([]byte, bool) { return dst, true }

// encoder writes the answer to one request. The fields that all of its events begin with are written once.
type encoder struct {
	chunk []byte // beginning of an event: {"id":…,"object":…,"created":…,"model":…
	full  []byte // beginning of an answer that is not streamed
	usage bool   // a stream ends with the token counts
	tells bool   // how far the prompt is read is wanted
	shape shape
}

func newEncoder(o *request, id, chunk, full string, at time.Time, s shape) *encoder {
	now := at.Unix()
	head := func(object string) []byte {
		b := wire.AppendString([]byte(`{"id":`), id)
		b = wire.AppendString(append(b, `,"object":`...), object)
		b = strconv.AppendInt(append(b, `,"created":`...), now, 10)
		return wire.AppendString(append(b, `,"model":`...), o.Model.Name)
	}
	return &encoder{head(chunk), head(full), o.usage, o.Reading, s}
}

// Media implements answer.Encoder.
func (*encoder) Media() string { return "text/event-stream" }

func (e *encoder) open(dst []byte) []byte {
	return append(append(append(dst, "data: "...), e.chunk...), `,"choices":[`...)
}

// Reading implements answer.Encoder.
func (e *encoder) Reading(dst []byte, r actors.Reading, since time.Duration) []byte {
	if !e.tells {
		return wire.AppendReading(dst, r.Done, r.Total)
	}
	return append(wire.AppendProgress(e.shut(e.open(dst)), r.Total, r.Cached, r.Done, since), "}\n\n"...)
}

// Begin implements answer.Encoder.
func (e *encoder) Begin(dst []byte, c *answer.Choice) []byte {
	from := len(dst)
	dst = e.open(dst)
	before := len(dst)
	dst = e.shape.first(dst, c)
	if len(dst) == before {
		return dst[:from]
	}
	return append(e.shut(dst), "}\n\n"...)
}

// shut closes the choices of an event before the one with the token counts.
func (e *encoder) shut(dst []byte) []byte {
	if e.usage {
		return append(dst, `],"usage":null`...)
	}
	return append(dst, ']')
}

// Part implements answer.Encoder.
func (e *encoder) Part(dst []byte, c *answer.Choice) []byte {
	return append(e.shut(e.shape.part(e.open(dst), c)), "}\n\n"...)
}

// End implements answer.Encoder. The last event of a choice brings its timings.
func (e *encoder) End(dst []byte, c *answer.Choice) []byte {
	dst = append(e.shut(e.shape.last(e.open(dst), c)), `,"timings":`...)
	return append(wire.AppendTimings(dst, c.Timings()), "}\n\n"...)
}

// Close implements answer.Encoder.
func (e *encoder) Close(dst []byte, choices []*answer.Choice) []byte {
	if e.usage {
		dst = append(e.open(dst), `],"usage":`...)
		dst = append(appendUsage(dst, choices), "}\n\n"...)
	}
	return append(dst, "data: [DONE]\n\n"...)
}

// Fault implements answer.Encoder.
func (*encoder) Fault(dst []byte, f *wire.Fault) []byte {
	return append(appendFault(append(dst, "data: "...), f), "\n\n"...)
}

// Whole implements answer.Encoder.
func (e *encoder) Whole(choices []*answer.Choice) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		wanted := true
		hand := func(dst []byte) ([]byte, bool) {
			wanted = wanted && yield(dst)
			return dst[:0], wanted
		}
		dst := append(slices.Clone(e.full), `,"choices":[`...)
		for i, c := range choices {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, wanted = hand(e.shape.whole(dst, c, hand)); !wanted {
				return
			}
		}
		dst = appendUsage(append(dst, `],"usage":`...), choices)
		if len(choices) == 1 {
			dst = wire.AppendTimings(append(dst, `,"timings":`...), choices[0].Timings())
		}
		yield(append(dst, '}'))
	}
}

// appendFinish appends the finish_reason of a choice.
func appendFinish(dst []byte, c *answer.Choice) []byte {
	reason := "stop"
	switch {
	case c.Finish == actors.Length:
		reason = "length"
	case c.Calls > 0:
		reason = "tool_calls"
	}
	dst = append(dst, `,"finish_reason":`...)
	return append(wire.AppendString(dst, reason), '}')
}
