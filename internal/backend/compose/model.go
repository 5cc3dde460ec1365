package compose

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// model is a program on several devices. Its steps are those of the device that computes the program's end, where the
// logits are; for each of them every other device has a step of its own.
type model struct {
	backend.Joined // blocks of all of them
	program        *ir.Program
	config         backend.Config
	members        []*member
	devices        int       // those that compute nothing, too
	of             []*member // by segment
	steps          []*backend.Step
	links          *links
	writers        []int       // by value: the segment that writes it
	entered        int         // the segment whose values were brought last; -1: a step begins
	due            backend.Due // of all devices together: each one's own has gaps

	mu     sync.Mutex
	ends   []*ending // of the ring
	number uint64    // of the last step that began
}

// Steps is the ring of the device at the end. Traits bound it by what the others allow.
func (m *model) Steps() []*backend.Step { return m.steps }

// index is where a step is in the ring.
func (m *model) index(s *backend.Step) int { return slices.Index(m.steps, s) }

// at returns the device that computes a segment, and that device's own step.
func (m *model) at(segment int, s *backend.Step) (*member, *backend.Step, error) {
	if segment < 0 || segment >= len(m.of) {
		return nil, nil, fmt.Errorf("segment %d of %d", segment, len(m.of))
	}
	i := m.index(s)
	if i < 0 {
		return nil, nil, errors.New("a step of another model")
	}
	x := m.of[segment]
	return x, x.step(i), nil
}

// enter is at for the segment that is run next; it brings its device the values that the segment takes.
func (m *model) enter(w *backend.Work, s *backend.Step) (*member, *backend.Step, error) {
	segment := w.Segment
	x, at, err := m.at(segment, s)
	if err == nil {
		err = m.due.Follows(&m.config.Layout, w)
	}
	if err == nil && m.entered < 0 {
		err = s.Check(m.program, &m.config.Limits, 0)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case m.entered == segment:
		return x, at, nil
	case m.entered < 0:
		m.begin(m.ends[m.index(s)])
		m.fill(s)
	}
	m.entered = segment
	for _, l := range m.links.takes[segment] {
		if err := l.arrive(x, at); err != nil {
			return nil, nil, err
		}
	}
	return x, at, nil
}

// fill gives every device its own step of the composition, before any of them begins: one that computes beside the
// program may read its step until that has ended.
func (m *model) fill(s *backend.Step) {
	i := m.index(s)
	for _, x := range m.members {
		if at := x.step(i); at != s {
			at.Tokens, at.Spans, at.Prompt = s.Tokens, s.Spans, s.Prompt
		}
	}
}

// leave copies out the values of a segment that other devices take.
func (m *model) leave(segment int, x *member, s *backend.Step) error {
	for _, l := range m.links.hands[segment] {
		if err := l.leave(x, s); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a segment, or a part of it, on the device that computes it.
func (m *model) Run(w backend.Work, s *backend.Step) error {
	x, at, err := m.enter(&w, s)
	if err == nil && !w.Whole {
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
func (x *member) number(w *backend.Work) error {
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

// Foresees asks the segment's device. It is ok only if the route is on the same device.
func (m *model) Foresees(segment int) (route int, ok bool) {
	route, ok = m.of[segment].Foresees(segment)
	return route, ok && m.of[route] == m.of[segment]
}

// In keeps an input for the devices that take it, each just before its first segment that does. What a segment has
// handed on is replaced on its own device, and on its way to others.
func (m *model) In(v ir.Value, s *backend.Step, rows []float32) error {
	if v >= 0 && int(v) < len(m.writers) && !slices.Contains(m.program.Takes(0), v) {
		return m.replace(v, s, rows)
	}
	i := slices.IndexFunc(m.links.inputs, func(l *link) bool { return l.value == v })
	if i < 0 {
		return fmt.Errorf("value %d is no input of rows: all of the program is here", v)
	}
	l := m.links.inputs[i]
	if n := s.Rows() * l.width; len(rows) != n || n > len(l.rows) {
		return fmt.Errorf("input %d: %d numbers, want %d rows of %d, at most %d", v, len(rows), s.Rows(), l.width,
			m.config.MaxRows)
	}
	copy(l.rows, rows)
	return nil
}

func (m *model) replace(v ir.Value, s *backend.Step, rows []float32) error {
	x, at, err := m.at(m.writers[v], s)
	if err != nil {
		return err
	}
	for _, l := range m.links.hands[m.writers[v]] {
		if l.value == v {
			copy(l.rows, rows)
		}
	}
	return x.In(v, at, rows)
}

// Out asks the device that computed the value.
func (m *model) Out(v ir.Value, s *backend.Step, rows []float32) error {
	if v < 0 || int(v) >= len(m.writers) {
		return fmt.Errorf("value %d of %d", v, len(m.writers))
	}
	x, at, err := m.at(m.writers[v], s)
	if err != nil {
		return err
	}
	return x.Out(v, at, rows)
}

// Upload uploads rows to every device that multiplies by the weight, or looks it up: a tied embedding may be on
// several.
func (m *model) Upload(w ir.Ref, row int, data []byte) error {
	used := false
	for _, x := range m.members {
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

// RowGrain is a multiple of each device's.
func (m *model) RowGrain() int {
	n := 1
	for _, x := range m.members {
		a, b := n, x.RowGrain()
		for n%b != 0 {
			n += a
		}
	}
	return n
}

// Slot is the memory of a slot, on the device that has it.
func (m *model) Slot(slot int) []byte {
	for _, x := range m.members {
		if slot >= 0 && slot < len(x.slots) && x.slots[slot] != absent {
			return x.Slot(x.slots[slot])
		}
	}
	return nil
}

// Place places a group on the device that computes with it.
func (m *model) Place(group, slot int, data [][]byte) error {
	for _, x := range m.members {
		if group >= 0 && group < len(x.groups) && x.groups[group] != absent &&
			slot >= 0 && slot < len(x.slots) && x.slots[slot] != absent {
			return x.Place(x.groups[group], x.slots[slot], data)
		}
	}
	return fmt.Errorf("group %d in slot %d: they are not of one device", group, slot)
}

// Memory counts the memory of devices that compute in the program's memory as Host, if another has memory of its own.
func (m *model) Memory() (all backend.Memory) {
	all.Devices = make([]backend.Memory, m.devices)
	own := slices.ContainsFunc(m.members, func(x *member) bool { return x.own })
	for _, x := range m.members {
		of := x.Memory()
		all.Devices[x.device] = of
		if all.Host += of.Host; own && !x.own {
			all.Host += of.Weights + of.KV + of.Scratch
			continue
		}
		all.Weights, all.KV, all.Scratch = all.Weights+of.Weights, all.KV+of.KV, all.Scratch+of.Scratch
	}
	all.Host += int64(len(m.links.memory))
	return all
}

// Close closes what every device has, as far as it was compiled.
func (m *model) Close() error {
	var errs []error
	for _, x := range m.members {
		if x.Model != nil {
			errs = append(errs, x.Model.Close())
		}
	}
	return errors.Join(append(errs, m.links.free())...)
}
