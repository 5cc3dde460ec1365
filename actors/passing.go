package actors

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/arch"
)

// In this file hidden states go from a model to its head, and from the head's last row to its next.

// passing takes hidden states out of the steps of a model, or brings them to those of a head. It belongs to the
// device's actor.
type passing struct {
	after       int      // segment after which the hidden states are there
	stream      ir.Value // that they are
	width       int
	head        bool
	target, own ir.Value // inputs of a head
	rows, owns  []float32
}

// newPassing returns nil if a model neither has a head nor is one.
func newPassing(s *spec) *passing {
	if !s.head && !s.headed {
		return nil
	}
	p := &passing{after: len(s.bound.Segments) - 2, width: s.bound.Width, head: s.head}
	p.stream = s.bound.Segments[p.after].Stream()
	p.target, _ = s.bound.Input(arch.TargetRows)
	p.own, _ = s.bound.Input(arch.OwnRows)
	return p
}

// bring gives a step of a head its inputs, before the first segment.
func (p *passing) bring(model backend.Model, m *step) error {
	if p == nil || !p.head {
		return nil
	}
	n := m.compute.Rows() * p.width
	p.rows, p.owns = grown(p.rows, n), grown(p.owns, n)
	clear(p.rows)
	clear(p.owns)
	for i, part := range m.parts {
		t := &part.Seq.Owner.(*sequence).follows.heard
		span := &m.compute.Spans[i]
		for r := range span.Rows {
			to := (span.Row + r) * p.width
			if row := t.row(span.Pos+r, p.width); row != nil {
				copy(p.rows[to:], row)
			} else if t.ownAt == span.Pos+r {
				copy(p.owns[to:][:p.width], t.own)
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
	if p == nil || segment != p.after || !p.wants(m) {
		return nil
	}
	p.rows = grown(p.rows, m.compute.Rows()*p.width)
	if err := model.Out(p.stream, m.compute, p.rows); err != nil {
		return fmt.Errorf("hidden states: %w", err)
	}
	for i, part := range m.parts {
		q, span := part.Seq.Owner.(*sequence), &m.compute.Spans[i]
		rows := p.rows[span.Row*p.width:][:span.Rows*p.width]
		switch {
		case p.head:
			t := &q.follows.heard
			t.own, t.ownAt = append(t.own[:0], rows[len(rows)-p.width:]...), span.Pos+span.Rows
		case wanted(q, span):
			q.hidden.put(span.Pos, rows)
		}
	}
	return nil
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
