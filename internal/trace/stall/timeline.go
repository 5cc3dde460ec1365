package stall

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// rows divide a device's spans by what they are: a span of one row lies within spans of the rows above, and spans of
// the same row follow one another.
const (
	idle = iota
	segment
	step
	rows
	other
)

func row(k trace.Kind) int {
	switch k {
	case trace.Idle:
		return idle
	case trace.Prefill, trace.Decode:
		return step
	case trace.Embed, trace.Mix, trace.FFN, trace.Route, trace.Experts, trace.Head, trace.Pool, trace.Block:
		return segment
	}
	return other
}

// timeline is a device's time, cut wherever a span begins or ends.
type timeline struct {
	rows    [rows][]trace.Span // by begin, none within another of its row
	borders []time.Duration    // ascending
}

func newTimeline(track string, spans []trace.Span) *timeline {
	t := &timeline{}
	for i := range spans {
		if s := &spans[i]; s.Track == track && row(s.Kind) != other {
			t.rows[row(s.Kind)] = append(t.rows[row(s.Kind)], *s)
		}
	}
	for r := range t.rows {
		t.rows[r] = follow(t.rows[r])
		for i := range t.rows[r] {
			t.borders = append(t.borders, t.rows[r][i].At, t.rows[r][i].End())
		}
	}
	slices.Sort(t.borders)
	t.borders = slices.Compact(t.borders)
	return t
}

// follow has each span begin where the one before it ends, if it began earlier: a device that computes several steps at
// once is busy once.
func follow(spans []trace.Span) []trace.Span {
	slices.SortStableFunc(spans, func(a, b trace.Span) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.End(), b.End()))
	})
	kept, at := spans[:0], time.Duration(math.MinInt64)
	for _, s := range spans {
		if end := s.End(); end > at && s.Work > 0 {
			s.At = max(s.At, at)
			s.Work = end - s.At
			kept, at = append(kept, s), end
		}
	}
	return kept
}

// pieces yields the stretches between borders, each with the step that it is in, if any. Where the device waited it
// did not compute, whatever lies around the wait.
func (t *timeline) pieces(yield func(Piece, *trace.Span) bool) {
	var at [rows]int
	for i := 1; i < len(t.borders); i++ {
		p := Piece{From: t.borders[i-1], To: t.borders[i], Kind: trace.Message, Layer: -1}
		var in [rows]*trace.Span
		for r := range in {
			in[r] = t.at(r, &at[r], p.From)
		}
		switch {
		case in[idle] != nil:
			p.Kind, p.Cause, p.Layer = trace.Idle, in[idle].Cause, in[idle].Layer
		case in[segment] != nil:
			p.Kind, p.Layer = in[segment].Kind, in[segment].Layer
		case in[step] == nil:
			p.Kind = trace.Idle
		}
		if !yield(p, in[step]) {
			return
		}
	}
}

// at is the span of a row that a time lies in; next is the row's first one that did not end before.
func (t *timeline) at(r int, next *int, when time.Duration) *trace.Span {
	for *next < len(t.rows[r]) && t.rows[r][*next].End() <= when {
		*next++
	}
	if *next < len(t.rows[r]) && t.rows[r][*next].At <= when {
		return &t.rows[r][*next]
	}
	return nil
}
