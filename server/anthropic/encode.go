package anthropic

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// encoder writes the answer to one request. It remembers the open block, so it serves one choice only.
type encoder struct {
	head  []byte // {"id":…,"type":"message","role":"assistant","model":…
	most  int    // most tokens of the answer that the request allows
	omit  bool   // thinking comes without its text
	open  block  // kind of the open block of a stream
	index int    // index of the open block, or of the next one
}

// block is a kind of content block.
type block int

const (
	none block = iota
	thinking
	speech
	use
)

func newEncoder(o *request, id string) *encoder {
	head := wire.AppendString([]byte(`{"id":`), id)
	head = wire.AppendString(append(head, `,"type":"message","role":"assistant","model":`...), o.Model.Name)
	return &encoder{head: head, most: o.most, omit: o.omit}
}

// event appends the beginning of an event, up to its type. Some clients read the event line, others the type in the
// data.
func event(dst []byte, name string) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	return append(append(dst, name...), '"')
}

const end = "}\n\n" // end of an event

// Media implements answer.Encoder.
func (*encoder) Media() string { return "text/event-stream" }

// Reading implements answer.Encoder.
func (*encoder) Reading(dst []byte, r actors.Reading, _ time.Duration) []byte {
	return wire.AppendReading(dst, r.Done, r.Total)
}

// Begin implements answer.Encoder. Nothing of the answer is sent yet.
func (e *encoder) Begin(dst []byte, c *answer.Choice) []byte {
	u := c.Usage
	u.Generated = 0
	dst = append(append(event(dst, "message_start"), `,"message":`...), e.head...)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`...)
	dst = append(append(appendUsage(dst, u), '}'), end...)
	return append(event(dst, "ping"), end...)
}

// Part implements answer.Encoder.
func (e *encoder) Part(dst []byte, c *answer.Choice) []byte {
	for i := range c.New.Parts {
		p := &c.New.Parts[i]
		switch p.Kind {
		case answer.Thought:
			dst = e.enter(dst, thinking, `{"type":"thinking","thinking":"","signature":""}`)
			if !e.omit {
				dst = e.delta(dst, `{"type":"thinking_delta","thinking":`, p.Text)
			}
		case answer.Speech:
			dst = e.enter(dst, speech, `{"type":"text","text":""}`)
			dst = e.delta(dst, `{"type":"text_delta","text":`, p.Text)
		case answer.Call:
			if p.Name != "" {
				dst = e.enter(e.leave(dst), use, string(appendUse(nil, p, []byte("{}"))))
			}
			if len(p.Text) > 0 {
				dst = e.delta(dst, `{"type":"input_json_delta","partial_json":`, p.Text)
			}
		}
	}
	return dst
}

// appendUse appends the block of a call.
func appendUse(dst []byte, p *answer.Part, input []byte) []byte {
	dst = wire.AppendString(append(dst, `{"type":"tool_use","id":`...), p.ID)
	dst = wire.AppendString(append(dst, `,"name":`...), p.Name)
	return append(append(append(dst, `,"input":`...), input...), '}')
}

// enter opens a block of a kind, unless one of that kind is open.
func (e *encoder) enter(dst []byte, kind block, empty string) []byte {
	if e.open == kind {
		return dst
	}
	dst = e.leave(dst)
	e.open = kind
	dst = strconv.AppendInt(append(event(dst, "content_block_start"), `,"index":`...), int64(e.index), 10)
	return append(append(append(dst, `,"content_block":`...), empty...), end...)
}

// leave closes the open block, if there is one.
func (e *encoder) leave(dst []byte) []byte {
	if e.open == none {
		return dst
	}
	dst = strconv.AppendInt(append(event(dst, "content_block_stop"), `,"index":`...), int64(e.index), 10)
	e.open = none
	e.index++
	return append(dst, end...)
}

func (e *encoder) delta(dst []byte, form string, text []byte) []byte {
	dst = strconv.AppendInt(append(event(dst, "content_block_delta"), `,"index":`...), int64(e.index), 10)
	dst = append(append(dst, `,"delta":`...), form...)
	return append(append(wire.AppendString(dst, text), '}'), end...)
}

// End implements answer.Encoder.
func (e *encoder) End(dst []byte, c *answer.Choice) []byte {
	dst = append(event(e.leave(dst), "message_delta"), `,"delta":{`...)
	dst = append(e.reason(dst, c), `},"usage":`...)
	return append(appendTimings(appendUsage(dst, c.Usage), c), end...)
}

// Close implements answer.Encoder.
func (*encoder) Close(dst []byte, _ []*answer.Choice) []byte {
	return append(event(dst, "message_stop"), end...)
}

// Fault implements answer.Encoder.
func (*encoder) Fault(dst []byte, f *wire.Fault) []byte {
	return append(appendFault(append(dst, "event: error\ndata: "...), f), "\n\n"...)
}

// Whole implements answer.Encoder.
func (e *encoder) Whole(choices []*answer.Choice) iter.Seq[[]byte] {
	c := choices[0] // there are no others in this dialect
	dst := append(slices.Clone(e.head), `,"content":[`...)
	for i := range c.New.Parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.block(dst, &c.New.Parts[i])
	}
	dst = append(e.reason(append(dst, "],"...), c), `,"usage":`...)
	dst = append(appendTimings(appendUsage(dst, c.Usage), c), '}')
	return slices.Values([][]byte{dst})
}

// block appends a whole block.
func (e *encoder) block(dst []byte, p *answer.Part) []byte {
	text := p.Text
	switch p.Kind {
	case answer.Thought:
		if e.omit {
			text = nil
		}
		return append(wire.AppendString(append(dst, `{"type":"thinking","thinking":`...), text), `,"signature":""}`...)
	case answer.Call:
		return appendUse(dst, p, wire.AppendObject(nil, text))
	}
	return append(wire.AppendString(append(dst, `{"type":"text","text":`...), text), '}')
}

// reason returns the stop_reason of the answer.
func (e *encoder) reason(dst []byte, c *answer.Choice) []byte {
	reason := "end_turn"
	switch {
	case c.Stop != "":
		reason = "stop_sequence"
	case c.Finish == actors.Length && c.Usage.Generated < e.most:
		reason = "model_context_window_exceeded"
	case c.Finish == actors.Length:
		reason = "max_tokens"
	case c.Calls > 0:
		reason = "tool_use"
	}
	dst = wire.AppendString(append(dst, `"stop_reason":`...), reason)
	dst = append(dst, `,"stop_sequence":`...)
	if c.Stop == "" {
		return append(dst, "null"...)
	}
	return wire.AppendString(dst, c.Stop)
}

// appendUsage appends the usage object. Prompt tokens count either as read from the cache or as input. None count as
// written to the cache, since all prompts stay there while there is room.
func appendUsage(dst []byte, u actors.Usage) []byte {
	dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), int64(u.Prompt-u.Cached), 10)
	dst = strconv.AppendInt(append(dst, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...), int64(u.Cached), 10)
	dst = strconv.AppendInt(append(dst, `,"output_tokens":`...), int64(u.Generated), 10)
	return append(dst, '}')
}

// appendTimings appends the timings of an answer whose client asked for them.
func appendTimings(dst []byte, c *answer.Choice) []byte {
	if !c.Timed() {
		return dst
	}
	return wire.AppendTimings(append(dst, `,"timings":`...), c.Timings())
}
