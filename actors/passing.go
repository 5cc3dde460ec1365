package actors

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/arch"
)

// In this file hidden states go from a model to its head, and from the head's last row to its next.

// passing takes hidden states out of the steps of a model, or brings them to those of a head. It belongs to the
// device's actor.
type passing struct {
	after       []int      // segments after which hidden states are there
	streams     []ir.Value // that they are
	width       int        // of each
	head        bool
	target, own ir.Value // inputs of a head
	heard       int      // features of target
	rows, owns  []float32
	whole       []float32 // hidden states of several segments, side by side
}

// newPassing returns nil if a model neither has a head nor is one.
func newPassing(s *spec) *passing {
	if !s.head && s.taps == nil {
		return nil
	}
	p := &passing{after: s.taps, width: s.bound.Width, head: s.head}
	if p.head {
		p.after = []int{len(s.bound.Segments) - 2}
		p.target, _ = s.bound.Input(arch.TargetRows)
		p.own, _ = s.bound.Input(arch.OwnRows)
		p.heard = s.bound.Widths[p.target]
	}
	for _, segment := range p.after {
		p.streams = append(p.streams, s.bound.Segments[segment].Stream())
	}
	return p
}

// bring gives a step of a head its inputs, before the first segment.
func (p *passing) bring(model backend.Model, m *step) error {
	if p == nil || !p.head {
		return nil
	}
	n := m.compute.Rows()
	p.rows, p.owns = grown(p.rows, n*p.heard), grown(p.owns, n*p.width)
	clear(p.rows)
	clear(p.owns)
	for i, part := range m.parts {
		t := &part.Seq.Owner.(*sequence).follows.heard
		span := &m.compute.Spans[i]
		for r := range span.Rows {
			at := span.Row + r
			if row := t.row(span.Pos+r, p.heard); row != nil {
				copy(p.rows[at*p.heard:], row)
			} else if t.ownAt == span.Pos+r {
				copy(p.owns[at*p.width:][:p.width], t.own)
			}
		}
	}
	if err := model.In(p.target, m.compute, p.rows); err != nil {
		return fmt.Errorf("hidden states: %w", err)
	}
	if err := model.In(p.own, m.compute, p.owns); err != nil {
		return fmt.Errorf("a head's hidden states: %w", err)
	}
	return nil
}

// take keeps the hidden states that a step has left after a segment.
func (p *passing) take(model backend.Model, m *step, segment int) error {
	if p == nil {
		return nil
	}
	tap := slices.Index(p.after, segment)
	if tap < 0 || !p.wants(m) {
		return nil
	}
	p.rows = grown(p.rows, m.compute.Rows()*p.width)
	if err := model.Out(p.streams[tap], m.compute, p.rows); err != nil {
		return fmt.Errorf("hidden states: %w", err)
	}
	if all, width := p.beside(tap), len(p.after)*p.width; tap == len(p.after)-1 {
		p.keep(m, all, width)
	}
	return nil
}

// beside puts the hidden states that were copied out after a segment beside those of the segments before it.
func (p *passing) beside(tap int) []float32 {
	taps := len(p.after)
	if taps == 1 {
		return p.rows
	}
	p.whole = grown(p.whole, taps*len(p.rows))
	for r := range len(p.rows) / p.width {
		copy(p.whole[(r*taps+tap)*p.width:], p.rows[r*p.width:][:p.width])
	}
	return p.whole
}

// keep gives each sequence of a step its hidden states.
func (p *passing) keep(m *step, all []float32, width int) {
	for i, part := range m.parts {
		q, span := part.Seq.Owner.(*sequence), &m.compute.Spans[i]
		rows := all[span.Row*width:][:span.Rows*width]
		switch {
		case p.head:
			t := &q.follows.heard
			t.own, t.ownAt = append(t.own[:0], rows[len(rows)-width:]...), span.Pos+span.Rows
		case wanted(q, span):
			q.hidden.put(span.Pos, rows)
		}
	}
}

// wants says whether any hidden state of a step is of use.
func (p *passing) wants(m *step) bool {
	if p.head {
		return true
	}
	for i, part := range m.parts {
		if wanted(part.Seq.Owner.(*sequence), &m.compute.Spans[i]) {
			return true
		}
	}
	return false
}

// wanted says whether hidden states of a span are among those that will be kept when the answer begins.
func wanted(q *sequence, span *backend.Span) bool {
	return q.hidden != nil && span.Pos+span.Rows > q.Prompt-mostHidden
}
