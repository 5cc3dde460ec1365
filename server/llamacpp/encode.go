package llamacpp

import (
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
)

// encoder writes the answer to one request.
type encoder struct {
	model    string
	settings []byte // JSON
	several  bool   // the answer is a list
	tokens   bool   // the ids of tokens are wanted
	probs    bool   // the log-probabilities of tokens are wanted
	silent   bool   // no text is wanted: the prompt is only computed into the cache
	reading  bool   // how far the prompt is read is wanted
	slot     int64  // that was asked for; -1: any
}

func newEncoder(o *request) *encoder {
	text, err := json.Marshal(o.settings)
	if err != nil {
		panic(err) // they are numbers
	}
	e := &encoder{o.Model.Name, text, o.several, o.tokens, o.probs, o.silent, o.Reading, -1}
	if len(o.Prompts) > 0 && o.Prompts[0].Slot != nil {
		e.slot = int64(o.Prompts[0].Slot.ID)
	}
	return e
}

// Media implements answer.Encoder.
func (*encoder) Media() string { return "text/event-stream" }

// Reading implements answer.Encoder.
func (e *encoder) Reading(dst []byte, r actors.Reading, since time.Duration) []byte {
	if !e.reading {
		return wire.AppendReading(dst, r.Done, r.Total)
	}
	dst = append(dst, `data: {"index":0,"content":"","tokens":[],"stop":false,"id_slot":`...)
	dst = strconv.AppendInt(dst, e.slot, 10)
	return append(wire.AppendProgress(dst, r.Total, r.Cached, r.Done, since), "}\n\n"...)
}

// Begin implements answer.Encoder.
func (*encoder) Begin(dst []byte, _ *answer.Choice) []byte { return dst }

// Part implements answer.Encoder.
func (e *encoder) Part(dst []byte, c *answer.Choice) []byte {
	dst, _ = e.said(append(dst, "data: "...), c, false, func(dst []byte) ([]byte, bool) { return dst, true })
	return append(dst, "}\n\n"...)
}

// End implements answer.Encoder.
func (e *encoder) End(dst []byte, c *answer.Choice) []byte {
	dst = strconv.AppendInt(append(dst, `data: {"index":`...), int64(c.Index), 10)
	dst = append(dst, `,"content":"","tokens":[],"stop":true,"id_slot":`...)
	dst = strconv.AppendInt(dst, e.slot, 10)
	return append(e.ended(dst, c), "\n\n"...)
}

// Close implements answer.Encoder.
func (*encoder) Close(dst []byte, _ []*answer.Choice) []byte { return dst }

// Fault implements answer.Encoder.
func (*encoder) Fault(dst []byte, f *wire.Fault) []byte {
	return append(appendFault(append(dst, "data: "...), f), "\n\n"...)
}

// Whole implements answer.Encoder.
func (e *encoder) Whole(choices []*answer.Choice) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var dst []byte
		for i, c := range choices {
			switch {
			case i > 0:
				dst = append(dst, ',')
			case e.several:
				dst = append(dst, '[')
			}
			var wanted bool
			dst, wanted = e.said(dst, c, true, func(dst []byte) ([]byte, bool) { return dst[:0], yield(dst) })
			if !wanted {
				return
			}
			dst = e.ended(dst, c)
		}
		if e.several {
			dst = append(dst, ']')
		}
		yield(dst)
	}
}

// said appends what was generated for a choice, except the members that end it. Between the tokens of a long answer
// it calls hand, which may send the bytes so far, and reports whether the rest is wanted.
func (e *encoder) said(dst []byte, c *answer.Choice, stop bool, hand func([]byte) ([]byte, bool)) ([]byte, bool) {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	var said []byte
	if !e.silent {
		said = c.New.Said(answer.Speech)
	}
	dst = wire.AppendString(append(dst, `,"content":`...), said)
	wanted := true
	dst = append(dst, `,"tokens":[`...)
	for i := 0; e.tokens && wanted && i < len(c.New.Probs); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, wanted = hand(strconv.AppendInt(dst, int64(c.New.Probs[i].ID), 10))
	}
	dst = strconv.AppendBool(append(dst, `],"stop":`...), stop)
	dst = strconv.AppendInt(append(dst, `,"id_slot":`...), e.slot, 10)
	if !e.probs {
		return dst, wanted
	}
	dst = append(dst, `,"completion_probabilities":[`...)
	for i := 0; wanted && i < len(c.New.Probs); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, wanted = hand(appendProb(dst, c, &c.New.Probs[i]))
	}
	return append(dst, ']'), wanted
}

// appendProb appends a token with its log-probability and its likeliest alternatives.
func appendProb(dst []byte, c *answer.Choice, p *answer.Prob) []byte {
	one := func(id int32, logprob float32) {
		dst = wire.AppendProb(dst, c.Piece(id), logprob)
		dst = strconv.AppendInt(append(dst, `,"id":`...), int64(id), 10)
	}
	one(p.ID, p.LogProb)
	dst = append(dst, `,"top_logprobs":[`...)
	for i, t := range p.Top {
		if i > 0 {
			dst = append(dst, ',')
		}
		one(t.ID, t.LogProb)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// ended appends how a choice ended, its usage and its timings.
func (e *encoder) ended(dst []byte, c *answer.Choice) []byte {
	why := "eos"
	switch {
	case c.Stop != "":
		why = "word"
	case c.Finish == actors.Length:
		why = "limit"
	}
	u, stop := c.Usage, c.Stop
	if e.silent {
		why, stop, u.Generated = "limit", "", 0
	}
	dst = wire.AppendString(append(dst, `,"model":`...), e.model)
	dst = strconv.AppendInt(append(dst, `,"tokens_predicted":`...), int64(u.Generated), 10)
	dst = strconv.AppendInt(append(dst, `,"tokens_evaluated":`...), int64(u.Prompt), 10)
	dst = append(append(dst, `,"generation_settings":`...), e.settings...)
	dst = wire.AppendString(append(dst, `,"truncated":false,"stop_type":`...), why)
	dst = wire.AppendString(append(dst, `,"stopping_word":`...), stop)
	dst = strconv.AppendInt(append(dst, `,"tokens_cached":`...), int64(u.Prompt+u.Generated), 10)
	t := c.Timings()
	t.Written = u.Generated
	return append(wire.AppendTimings(append(dst, `,"timings":`...), t), '}')
}
