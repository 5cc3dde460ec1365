package remote

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// model is segments that a lender has compiled.
type model struct {
	backend.Blind
	line    *line
	program *ir.Program
	limits  backend.Config
	terms   terms
	ring    []*backend.Step
	sent    []*sent // by step of the ring
	crosses []bool  // by value: it may come, or go

	mu     sync.Mutex // of the steps in flight
	flying []*sent    // the oldest first
}

// sent is a step of the ring on its way.
type sent struct {
	step   *backend.Step
	frame  []byte // that is being written
	begun  bool   // the frames of the step so far say what it is
	away   bool   // some of the step went out
	failed bool   // it was refused here: nothing more of it is computed
	chosen []func([]int32)
	done   func(error)
	struck error // of a step before it
	heard  func(answer []byte, err error)
}

func newModel(l *line, p *ir.Bound, c *backend.Config, t *terms) *model {
	m := &model{line: l, program: p.Program, limits: *c, terms: *t, crosses: make([]bool, len(p.Widths))}
	for range c.Ring() {
		s := &sent{step: &backend.Step{Logits: make([]float32, c.MaxWanted*p.OutputWidth())}}
		s.heard = func(answer []byte, err error) { m.ended(s, answer, err) }
		m.ring, m.sent = append(m.ring, s.step), append(m.sent, s)
	}
	for s := range p.Segments {
		if !c.Computes(s) {
			continue
		}
		for _, v := range slices.Concat(p.Takes(s), p.Segments[s].Carries) {
			m.crosses[v] = true
		}
	}
	return m
}

// Steps is the ring.
func (m *model) Steps() []*backend.Step { return m.ring }

// RowGrain is the lender's.
func (m *model) RowGrain() int { return m.terms.Grain }

// Slot: weights stay.
func (*model) Slot(int) []byte { return nil }

var errStays = errors.New("weights stay on another machine: no group shares a slot")

// Place refuses: no group shares a slot.
func (*model) Place(int, int, [][]byte) error { return errStays }

// Memory is what the lender's device has.
func (m *model) Memory() backend.Memory {
	return backend.Memory{Weights: m.terms.Weights, KV: m.terms.KV, Scratch: m.terms.Scratch}
}

// Upload waits until the lender has the rows.
func (m *model) Upload(w ir.Ref, row int, data []byte) error {
	f := number(number(frame(make([]byte, 0, headerBytes+8+len(data)), kindUpload), int(w)), row)
	return m.line.wait(append(f, data...), m.done)
}

// done reads an answer that says nothing.
func (m *model) done(answer []byte) error {
	b := body{rest: answer}
	return b.fault(m.line.name)
}

// of is the step on its way that a step of the ring is.
func (m *model) of(s *backend.Step) *sent { return m.sent[slices.Index(m.ring, s)] }

// Run writes that a segment is run. What the lender says of it comes with the step's end.
func (m *model) Run(w backend.Work, s *backend.Step) error {
	x := m.of(s)
	err := m.check(&w, x)
	if err == nil {
		err = m.begin(x)
	}
	w.Release() // nothing shares a slot
	if err != nil {
		x.failed = true
		return err
	}
	x.frame = append(number(x.open(deedRun), w.Segment), flag(w.Chosen != nil))
	if w.Chosen != nil {
		x.chosen = append(x.chosen, w.Chosen)
	}
	return nil
}

func (m *model) check(w *backend.Work, x *sent) error {
	switch {
	case !w.Whole:
		return errStays
	case w.Segment < 0 || w.Segment >= len(m.program.Segments) || !m.limits.Computes(w.Segment):
		return fmt.Errorf("segment %d of %d is not computed here", w.Segment, len(m.program.Segments))
	case w.Chosen != nil && m.program.Segments[w.Segment].Kind != ir.SegRoute:
		return fmt.Errorf("segment %d is no route", w.Segment)
	}
	return x.step.Follows(&m.limits.Layout, w)
}

// begin writes what a step is, if nothing of it was written yet.
func (m *model) begin(x *sent) error {
	if x.begun {
		return nil
	}
	if err := x.step.Check(m.program, &m.limits.Limits, 0); err != nil {
		return err
	}
	x.frame, x.begun = begin(x.open(deedBegin), x.step), true
	return nil
}

// open is the frame that is being written, with one more deed.
func (x *sent) open(d deed) []byte {
	if len(x.frame) == 0 {
		x.frame = frame(x.frame, kindStep)
	}
	return append(x.frame, byte(d))
}

// In writes a value into the frame.
func (m *model) In(v ir.Value, s *backend.Step, rows []float32) error {
	x := m.of(s)
	if err := m.crossing(v, x, rows); err != nil {
		return err
	}
	if err := m.begin(x); err != nil {
		return err
	}
	x.frame = floats(number(number(x.open(deedIn), int(v)), len(rows)), rows)
	return nil
}

// Out sends what there is of the step, and waits for the value.
func (m *model) Out(v ir.Value, s *backend.Step, rows []float32) error {
	x := m.of(s)
	if err := m.crossing(v, x, rows); err != nil {
		return err
	}
	if !x.begun {
		return errors.New("a value of a step that has not begun")
	}
	f := number(x.open(deedOut), int(v))
	x.frame, x.away = f[:0], true
	return m.line.wait(f, func(answer []byte) error {
		b := body{rest: answer}
		if err := cmp.Or(b.fault(m.line.name), x.hear(&b)); err != nil {
			return err
		}
		b.floats(rows)
		return b.end()
	})
}

func (m *model) crossing(v ir.Value, x *sent, rows []float32) error {
	if v < 0 || int(v) >= len(m.crosses) || !m.crosses[v] {
		return fmt.Errorf("value %d crosses no border of what is computed here", v)
	}
	if n, width := x.step.Height(m.program, v), m.program.Widths[v]; len(rows) != n*width {
		return fmt.Errorf("value %d: %d numbers, want %d rows of %d", v, len(rows), n, width)
	}
	return nil
}

// Finish sends the rest of the step, and does not wait.
func (m *model) Finish(s *backend.Step, done func(error)) {
	x := m.of(s)
	s.Restart()
	send := x.away || x.begun && !x.failed
	if x.failed { // what was refused here is not computed there
		x.frame = x.frame[:0]
	}
	f := x.open(deedFinish)
	x.frame, x.begun, x.away, x.failed = f[:0], false, false, false
	if !send {
		x.chosen = x.chosen[:0]
		done(nil)
		return
	}
	m.mu.Lock()
	x.done, x.struck = done, nil
	m.flying = append(m.flying, x)
	m.mu.Unlock()
	if err := m.line.ask(f, x.heard); err != nil {
		x.heard(nil, err)
	}
}

// ended takes in the end of a step. An error strikes the steps behind it.
func (m *model) ended(x *sent, answer []byte, err error) {
	if err == nil {
		err = m.result(x, answer)
	}
	m.mu.Lock()
	if err == nil {
		err = x.struck
	}
	at := slices.Index(m.flying, x)
	for _, later := range m.flying[at+1:] {
		if err != nil && later.struck == nil {
			later.struck = err
		}
	}
	m.flying = slices.Delete(m.flying, at, at+1)
	done := x.done
	m.mu.Unlock()
	x.chosen = x.chosen[:0]
	done(err)
}

// result reads logits.
func (m *model) result(x *sent, answer []byte) error {
	b := body{rest: answer}
	if err := cmp.Or(b.fault(m.line.name), x.hear(&b)); err != nil {
		return err
	}
	if m.limits.Computes(len(m.program.Segments) - 1) {
		b.floats(x.step.Logits[:len(x.step.Wanted)*m.program.OutputWidth()])
	}
	return b.end()
}

// hear reads which experts the routes of a frame chose.
func (x *sent) hear(b *body) error {
	for _, chosen := range x.chosen {
		chosen(b.numbers(nil))
	}
	x.chosen = x.chosen[:0]
	return b.err
}

// BlockBytes is the lender's.
func (m *model) BlockBytes(class int) int {
	if class < 0 || class >= len(m.terms.Blocks) {
		return 0
	}
	return m.terms.Blocks[class]
}

// Parts: blocks lie elsewhere.
func (m *model) Parts(class int, block int32) ([][]byte, error) {
	all := m.limits.Blocks
	if class < 0 || class >= len(all) {
		return nil, fmt.Errorf("cache class %d of %d", class, len(all))
	}
	if block < 0 || int(block) >= all[class] {
		return nil, fmt.Errorf("block %d of cache class %d, which has %d", block, class, all[class])
	}
	return nil, nil
}

// Carry sends all in one frame, and gets what is wanted in one.
func (m *model) Carry(all []backend.Carriage) error {
	f := frame(nil, kindCarry)
	for i := range all {
		c := &all[i]
		if len(c.Memory) != m.BlockBytes(c.Class) {
			return fmt.Errorf("%d bytes for a block of cache class %d, which has %d", len(c.Memory), c.Class,
				m.BlockBytes(c.Class))
		}
		f = append(number(number(f, c.Class), int(c.Block)), flag(c.Out))
		if !c.Out {
			f = append(f, c.Memory...)
		}
	}
	return m.line.wait(f, func(answer []byte) error {
		b := body{rest: answer}
		if err := b.fault(m.line.name); err != nil {
			return err
		}
		for i := range all {
			if all[i].Out {
				copy(all[i].Memory, b.take(len(all[i].Memory)))
			}
		}
		return b.end()
	})
}

// CopyBlock has the lender copy.
func (m *model) CopyBlock(class int, to, from int32) error {
	f := number(number(number(frame(nil, kindCopy), class), int(to)), int(from))
	return m.line.wait(f, m.done)
}

// Close has the lender close what it has, behind all steps in flight, and hangs up. One who is gone has closed it.
func (m *model) Close() error {
	err := m.line.wait(frame(nil, kindClose), m.done)
	m.line.end()
	if errors.Is(err, backend.ErrLost) {
		return nil
	}
	return err
}
