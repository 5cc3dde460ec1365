package cpu

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

var errWhole = errors.New("parts of a segment: the model was compiled without slots, all is there")

// some runs a part of a segment: the phases that have work for each group, for some groups; before the first part the
// phases that precede them, after the last part those that follow.
func (m *model) some(w *backend.Work, s *backend.Step) error {
	if m.config.Slots == nil {
		return errWhole
	}
	first, err := m.parts.Take(w)
	if err != nil {
		return err
	}
	if first {
		if err := m.begin(w.Segment, s); err != nil {
			return err
		}
	} else if s != m.step {
		return fmt.Errorf("another part of segment %d is of another step", w.Segment)
	}
	seg := &m.segments[w.Segment]
	for _, g := range w.Groups {
		if err := m.there(g); err != nil {
			return fmt.Errorf("%s: %w", seg.name, err)
		}
	}
	if seg.parts == 0 {
		if err := m.parts.Complete(m.needs); err != nil {
			return err
		}
		return m.run(seg, 0, len(seg.phases))
	}
	clear(m.named)
	for _, g := range w.Groups {
		m.named[g] = true
	}
	m.part, m.again = m.named, !first
	defer func() { m.part, m.again = nil, false }()
	return m.due(w, seg, first)
}

// due runs the phases of a segment that belong to this part.
func (m *model) due(w *backend.Work, seg *segment, first bool) error {
	from, after := seg.before, seg.before+seg.parts
	if first {
		from = 0
	}
	if err := m.run(seg, from, after); err != nil || !w.Last {
		return err
	}
	if err := m.parts.Complete(m.needs); err != nil {
		return err
	}
	return m.run(seg, after, len(seg.phases))
}

// needs says whether the running step needs a group of its segment: for an expert, whether rows were sorted to it.
func (m *model) needs(g *ir.Group) bool {
	if g.Expert != ir.Dense {
		from, to := m.dispatch.slots(g.Expert)
		return to > from
	}
	return !m.segments[g.Segment].ends || len(m.step.Wanted) > 0
}

// choices returns the experts of all rows at a route.
func (m *model) choices(route int, s *backend.Step) []int32 {
	seg := &m.segments[route]
	m.chosen = m.chosen[:0]
	for r := range s.Rows() {
		left := seg.used
		for e, w := range m.at(&seg.route, r) {
			if w != 0 {
				m.chosen = append(m.chosen, int32(e))
				left--
			}
		}
		for range left {
			m.chosen = append(m.chosen, -1)
		}
	}
	return m.chosen
}
