package openai

import (
	"strconv"

	"github.com/sluice-ai/sluice/actors"
)

// head is what every part of an answer begins with, already written.
type head struct {
	chunk []byte // of an event: {"id":…,"object":…,"created":…,"model":…
	full  []byte // of a whole answer
}

func newHead(id string, created int64, model, chunk, full string) head {
	write := func(object string) []byte {
		b := appendString([]byte(`{"id":`), id)
		b = appendString(append(b, `,"object":`...), object)
		b = strconv.AppendInt(append(b, `,"created":`...), created, 10)
		return appendString(append(b, `,"model":`...), model)
	}
	return head{write(chunk), write(full)}
}

// event appends an event with one choice, if write has something to say.
func (h *head) event(dst []byte, write func([]byte, *choice) []byte, c *choice) []byte {
	from := len(dst)
	dst = append(append(append(dst, "data: "...), h.chunk...), `,"choices":[`...)
	before := len(dst)
	dst = write(dst, c)
	if len(dst) == before {
		return dst[:from]
	}
	return append(dst, "]}\n\n"...)
}

// end appends the last event of a choice, which brings its timings.
func (h *head) end(dst []byte, s shape, c *choice) []byte {
	dst = append(append(append(dst, "data: "...), h.chunk...), `,"choices":[`...)
	dst = append(s.last(dst, c), `],"timings":`...)
	return append(appendTimings(dst, c.usage), "}\n\n"...)
}

// usage appends the event with the counts.
func (h *head) usage(dst []byte, u actors.Usage) []byte {
	dst = append(append(append(dst, "data: "...), h.chunk...), `,"choices":[],"usage":`...)
	return append(appendUsage(dst, u), "}\n\n"...)
}

// whole is an answer that is no stream.
func (h *head) whole(s shape, choices []*choice) []byte {
	dst := append(append([]byte(nil), h.full...), `,"choices":[`...)
	for i, c := range choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = s.whole(dst, c)
	}
	dst = appendUsage(append(dst, `],"usage":`...), usageOf(choices))
	if len(choices) == 1 {
		dst = appendTimings(append(dst, `,"timings":`...), choices[0].usage)
	}
	return append(dst, '}')
}

// appendFinish ends a choice.
func appendFinish(dst []byte, c *choice) []byte {
	dst = append(dst, `,"finish_reason":`...)
	return append(appendString(dst, string(c.finish)), '}')
}
