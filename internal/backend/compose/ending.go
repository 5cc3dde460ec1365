package compose

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// ending tracks the end of a step of the ring: it ends when it has ended on all devices. The model's lock guards it.
type ending struct {
	step   *backend.Step
	number uint64 // of the step, among all
	open   bool   // it has begun, and not ended
	left   int    // devices on which it has not ended yet
	err    error  // of these devices
	struck error  // of an earlier step that was in flight with it
	done   func(error)
	ran    []backend.Ran // what devices with a clock say of it
	ends   []func(error) // by member: told when it has ended there; bound once
}

func (m *model) newEnding(i int, s *backend.Step) *ending {
	e := &ending{step: s}
	for range m.members {
		e.ends = append(e.ends, func(err error) { m.ended(m.ends[i], err) })
	}
	return e
}

// begin counts a step as one in flight.
func (m *model) begin(e *ending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.number++
	e.number, e.open, e.err, e.struck, e.ran = m.number, true, nil, nil, e.ran[:0]
}

// Finish ends the step on every device.
func (m *model) Finish(s *backend.Step, done func(error)) {
	i := m.index(s)
	e := m.ends[i]
	if m.entered < 0 { // nothing of it was run
		m.begin(e)
	}
	m.mu.Lock()
	e.done, e.left = done, len(m.members)
	m.mu.Unlock()
	m.entered = -1
	m.due.Restart()
	for n, x := range m.members {
		x.Finish(x.step(i), e.ends[n])
	}
}

// ended is called when a device has ended a step. After the last one it reports the end: first what ran, in the
// program's order. An error fails the steps that began meanwhile, too, whatever the devices report for those.
func (m *model) ended(e *ending, err error) {
	m.mu.Lock()
	e.err = errors.Join(e.err, err)
	if e.left--; e.left > 0 {
		m.mu.Unlock()
		return
	}
	e.open = false
	if err = cmp.Or(e.err, e.struck); err != nil {
		for _, later := range m.ends {
			if later.open && later.number > e.number {
				later.struck = err
			}
		}
	}
	ran, done := e.ran, e.done
	m.mu.Unlock()
	slices.SortStableFunc(ran, func(a, b backend.Ran) int { return cmp.Compare(a.Segment, b.Segment) })
	for _, r := range ran {
		m.config.Ran(r)
	}
	done(err)
}

// ran is called with what a device did. What belongs to a step is kept until the step ends, since several devices
// report on one at once.
func (m *model) ran(x *member, r backend.Ran) {
	if r.Step == nil {
		m.config.Ran(r)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, e := range m.ends {
		if e.open && x.step(i) == r.Step {
			r.Step = e.step
			e.ran = append(e.ran, r)
			return
		}
	}
}
