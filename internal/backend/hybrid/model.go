package hybrid

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// model is a program on two devices. Its ring is the main one's; of the host's single step nothing is left when the
// main one has what it left.
type model struct {
	backend.Joined // of both: their blocks
	program        *ir.Program
	config         backend.Config
	main, host     *side
	sides          []*side       // by segment
	takes, hands   [][]*crossing // by segment: what comes from the other side before it, and goes there after it
	memory         []byte        // of crossings
	step           *backend.Step // the host's
	ends           []*ending     // of the ring
	entered        int           // the segment that what it takes was brought to; -1: a step begins
	open           bool          // its last part has not come
	writers        []int         // by value: the segment that writes it
}

// crossing is a value that one side leaves and the other takes: rows of the step that is enqueued.
type crossing struct {
	value ir.Value
	width int
	taken int // the segment before which the other side takes it
	rows  []float32
}

func floats(area []byte) []float32 {
	if len(area) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(area))), len(area)/4)
}

// of are the rows of a step.
func (x *crossing) of(s *backend.Step) []float32 { return x.rows[:len(s.Tokens)*x.width] }

// Steps is the ring, whose logits are where the program ends.
func (m *model) Steps() []*backend.Step { return m.main.Steps() }

// enter says who computes a segment, in which step of theirs, and brings it what it takes.
func (m *model) enter(segment int, s *backend.Step) (*side, *backend.Step, error) {
	if segment < 0 || segment >= len(m.sides) {
		return nil, nil, fmt.Errorf("segment %d of %d", segment, len(m.sides))
	}
	if m.entered < 0 {
		if err := s.Check(m.program, &m.config.Limits, 0); err != nil {
			return nil, nil, err
		}
	}
	if m.open && m.entered != segment {
		return nil, nil, fmt.Errorf("segment %d: the last part of segment %d has not come", segment, m.entered)
	}
	x, at := m.sides[segment], s
	if x == m.host {
		at = m.step
		at.Tokens, at.Spans = s.Tokens, s.Spans
	}
	if m.entered == segment {
		return x, at, nil
	}
	m.entered = segment
	for _, v := range m.takes[segment] {
		if err := x.In(v.value, at, v.of(s)); err != nil {
			return nil, nil, err
		}
	}
	return x, at, nil
}

// leave takes along what the other side takes.
func (m *model) leave(segment int, x *side, s *backend.Step) error {
	for _, v := range m.hands[segment] {
		if err := x.Out(v.value, s, v.of(s)); err != nil {
			return err
		}
	}
	return nil
}

// Run has a segment, or a part of it, computed where it is to be.
func (m *model) Run(w backend.Work, s *backend.Step) error {
	x, at, err := m.enter(w.Segment, s)
	if err == nil && !w.Whole {
		m.open = !w.Last
		err = x.number(&w)
	}
	if err != nil {
		w.Release()
		return err
	}
	if _, ok := m.Foresees(w.Segment); !ok {
		w.Foreseen = nil
	}
	if err := x.Run(w, at); err != nil || !w.Ends() {
		return err
	}
	return m.leave(w.Segment, x, at)
}

// number gives the groups of a part their numbers here.
func (x *side) number(w *backend.Work) error {
	x.part = x.part[:0]
	for _, g := range w.Groups {
		if g < 0 || g >= len(x.groups) || x.groups[g] == absent {
			return fmt.Errorf("part of segment %d with group %d, which is not there", w.Segment, g)
		}
		x.part = append(x.part, x.groups[g])
	}
	w.Groups = x.part
	return nil
}

// ending is how a step of the ring ends: when both sides have.
type ending struct {
	step  *backend.Step
	done  func(error)
	err   error // of the host
	early func(error)
	late  func(error) // both bound once
}

func newEnding(s *backend.Step) *ending {
	e := &ending{step: s}
	e.early = func(err error) { e.err = err }
	e.late = func(err error) { e.done(errors.Join(e.err, err)) }
	return e
}

// Finish ends the step on the host, which has computed all that it is to, and then on the other side.
func (m *model) Finish(s *backend.Step, done func(error)) {
	e := m.ends[slices.IndexFunc(m.ends, func(e *ending) bool { return e.step == s })]
	e.done, e.err, m.entered, m.open = done, nil, -1, false
	m.host.Finish(m.step, e.early)
	m.main.Finish(s, e.late)
}

// In is of no use to a program that is here whole.
func (m *model) In(v ir.Value, _ *backend.Step, _ []float32) error {
	return fmt.Errorf("value %d comes from nowhere else: all of the program is here", v)
}

// Out asks who computed the value.
func (m *model) Out(v ir.Value, s *backend.Step, rows []float32) error {
	if v < 0 || int(v) >= len(m.writers) {
		return fmt.Errorf("value %d of %d", v, len(m.writers))
	}
	x := m.sides[m.writers[v]]
	if x == m.host {
		s = m.step
	}
	return x.Out(v, s, rows)
}

// Upload brings rows to whoever multiplies by the weight, or looks it up: a tied embedding is on both sides.
func (m *model) Upload(w ir.Ref, row int, data []byte) error {
	used := false
	for _, x := range []*side{m.host, m.main} {
		if w < 0 || int(w) >= len(x.uses) || !x.uses[w] {
			continue
		}
		used = true
		if err := x.Upload(w, row, data); err != nil {
			return err
		}
	}
	if !used {
		return fmt.Errorf("weight %d is of no segment", w)
	}
	return nil
}

// RowGrain is a multiple of both.
func (m *model) RowGrain() int {
	a, b := m.main.RowGrain(), m.host.RowGrain()
	n := a
	for n%b != 0 {
		n += a
	}
	return n
}

// Slot is memory of the host's slots, if it is one.
func (m *model) Slot(slot int) []byte {
	for _, x := range []*side{m.host, m.main} {
		if slot >= 0 && slot < len(x.slots) && x.slots[slot] != absent {
			return x.Slot(x.slots[slot])
		}
	}
	return nil
}

// Place places a group where it is computed with.
func (m *model) Place(group, slot int, data [][]byte) error {
	for _, x := range []*side{m.host, m.main} {
		if group >= 0 && group < len(x.groups) && x.groups[group] != absent &&
			slot >= 0 && slot < len(x.slots) && x.slots[slot] != absent {
			return x.Place(x.groups[group], x.slots[slot], data)
		}
	}
	return fmt.Errorf("group %d in slot %d: they are not of one device", group, slot)
}

// Memory counts all of the host's as the program's.
func (m *model) Memory() backend.Memory {
	all, host := m.main.Memory(), m.host.Memory()
	all.Host += host.Weights + host.KV + host.Scratch + host.Host + int64(len(m.memory))
	return all
}

// Close closes both sides, as far as they were compiled.
func (m *model) Close() error {
	var errs []error
	for _, x := range []*side{m.main, m.host} {
		if x != nil && x.Model != nil {
			errs = append(errs, x.Model.Close())
		}
	}
	return errors.Join(append(errs, mem.Free(m.memory))...)
}

// Foresees asks the side that computes the segment. The route has to be of the same side.
func (m *model) Foresees(segment int) (route int, ok bool) {
	route, ok = m.sides[segment].Foresees(segment)
	return route, ok && m.sides[route] == m.sides[segment]
}
