package exec

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

var errWhole = errors.New("parts of a segment: the model was compiled without slots, all is there")

// Slot is nil: the host cannot write to slots of this device.
func (m *model) Slot(int) []byte { return nil }

// Place gives a slot to a group.
func (m *model) Place(g, slot int, data [][]byte) error { return m.weights.place(g, slot, data) }

// submitPart submits a part of a segment. The caller's lease of its groups ends, by w.Done, when the watcher has seen
// the part's end.
func (m *model) submitPart(w *backend.Work, s *backend.Step) error {
	e := ended{release: w.Done, group: absent, asked: time.Now()}
	moving := m.weights.moving(w.Groups)
	var err error
	e.value, err = m.part(w, s)
	switch {
	case w.Done == nil:
	case e.value == 0 || moving == absent:
		w.Done()
	default:
		e.group = moving
		m.ends <- e
	}
	return err
}

// moving is the first of some groups that moves; absent: none does.
func (m *weights) moving(groups []int) int {
	for _, g := range groups {
		if g >= 0 && g < len(m.groups) && m.groups[g].moves {
			return g
		}
	}
	return absent
}

// part submits a part. It returns the value of the queue's timeline at which nothing reads the part's groups any more;
// 0: nothing was submitted.
func (m *model) part(w *backend.Work, s *backend.Step) (uint64, error) {
	if m.config.Slots == nil {
		return 0, errWhole
	}
	first, err := m.weights.parts.Take(w)
	if err != nil {
		return 0, err
	}
	if !m.config.Computes(w.Segment) {
		return 0, fmt.Errorf("segment %d is not computed here", w.Segment)
	}
	x := m.ring.of(s)
	if first {
		err = errors.Join(m.begin(x), m.flush(x))
		m.parting, x.experts.part = x, 0
	} else if m.parting != x {
		err = fmt.Errorf("another part of segment %d is of another step", w.Segment)
	}
	if err != nil {
		return 0, err
	}
	for _, g := range w.Groups {
		if err := m.weights.there(g); err != nil {
			return 0, err
		}
	}
	if err := m.complete(x, w); err != nil {
		return 0, err
	}
	keys, err := m.cutUp(x, w, first)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	copied, behind := m.weights.behind(w.Groups)
	x.clock.behind, x.clock.moving = behind, m.weights.moving(w.Groups)
	value, err := m.submit(x, copied, keys...)
	x.clock.behind, x.clock.moving = absent, absent
	m.weights.read(w.Groups, value)
	return value, err
}

// complete returns an error if the last part of a segment comes, and groups that the step needs did not come.
func (m *model) complete(x *entry, w *backend.Work) error {
	if !w.Last {
		return nil
	}
	var c *choice
	if m.mixes(w.Segment) {
		var err error
		if c, err = m.learn(x, w.Segment); err != nil {
			return err
		}
	}
	return m.weights.parts.Complete(func(g *ir.Group) bool {
		if g.Expert != ir.Dense {
			return c != nil && slices.Contains(c.experts, int32(g.Expert))
		}
		return !m.layout.program.Segments[g.Segment].Kind.Ends() || len(x.step.Wanted) > 0
	})
}

// behind is the value of the timeline of copies at which all of some groups are in their slots, and the group that
// comes last.
func (m *weights) behind(groups []int) (copied uint64, last int) {
	last = absent
	for _, g := range groups {
		if m.groups[g].copied > copied {
			copied, last = m.groups[g].copied, g
		}
	}
	return copied, last
}

// read notes that groups are read until the queue's timeline has come to a value.
func (m *weights) read(groups []int, value uint64) {
	for _, g := range groups {
		if r := m.groups[g].slot; r != absent {
			m.slots[r].used = max(m.slots[r].used, value)
		}
	}
}

// cutUp lists the recordings of a part: what comes before the first group, the part's groups, and what comes after the
// last one.
func (m *model) cutUp(x *entry, w *backend.Work, first bool) (all []recorded, err error) {
	key := recorded{Shape: x.shape}
	key.From, key.To = w.Segment, w.Segment
	groups := m.weights.groups
	if !m.layout.plan.Divided(w.Segment) { // all groups stay, or the segment has one group
		if !w.Last {
			return nil, nil
		}
		for _, g := range w.Groups {
			if groups[g].moves {
				key.Group, key.Slot = g, groups[g].slot
			}
		}
		return append(all, key), nil
	}
	if first {
		key.Portion = plan.Before
		all = append(all, key)
	}
	key.Portion = plan.Among
	switch {
	case len(w.Groups) == 0:
	case m.mixes(w.Segment):
		key.Part = x.experts.part
		if err = m.fillRegion(x, w); err != nil {
			return nil, err
		}
		x.experts.part++
		all = append(all, key)
	default:
		for _, g := range w.Groups {
			key.Group, key.Slot = g, groups[g].slot
			all = append(all, key)
		}
	}
	if w.Last {
		key.Portion, key.Group, key.Slot, key.Part = plan.After, 0, 0, 0
		all = append(all, key)
	}
	return all, nil
}
