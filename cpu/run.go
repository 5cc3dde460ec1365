package cpu

import (
	"fmt"
	"runtime/debug"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Run runs the phases of a segment one after another: all of them, or those with work for some groups. Nothing reads
// the groups any more when it returns. It allocates nothing unless it fails.
func (m *model) Run(w backend.Work, s *backend.Step) error {
	err := s.Follows(&m.config.Layout, &w)
	if err == nil {
		m.stop = w.Stop
		err = m.compute(&w, s)
		m.stop = nil
	}
	w.Release()
	if err != nil || !w.Ends() {
		return err
	}
	if w.Chosen != nil {
		w.Chosen(m.choices(w.Segment, s))
	}
	if _, ok := m.Foresees(w.Segment); ok && w.Foreseen != nil {
		m.foresee(w.Segment, s, w.Foreseen)
	}
	return nil
}

func (m *model) compute(w *backend.Work, s *backend.Step) error {
	if w.Chosen != nil && (w.Segment < 0 || w.Segment >= len(m.segments) || m.segments[w.Segment].used == 0) {
		return fmt.Errorf("segment %d is no route that is computed here", w.Segment)
	}
	if w.Whole {
		return m.whole(w.Segment, s)
	}
	return m.some(w, s)
}

// whole runs all phases of a segment.
func (m *model) whole(index int, s *backend.Step) error {
	if err := m.parts.Open(); err != nil {
		return err
	}
	if err := m.begin(index, s); err != nil {
		return err
	}
	seg := &m.segments[index]
	for _, g := range m.parts.Matrices[index] {
		if m.parts.Groups[g].Expert != ir.Dense || seg.ends && len(s.Wanted) == 0 {
			break // which experts are needed is found out on the way
		}
		if err := m.there(g); err != nil {
			return fmt.Errorf("%s: %w", seg.name, err)
		}
	}
	return m.run(seg, 0, len(seg.phases))
}

// begin checks a step and makes it the running one.
func (m *model) begin(index int, s *backend.Step) error {
	if index < 0 || index >= len(m.segments) || !m.config.Computes(index) {
		return fmt.Errorf("segment %d of %d is not computed here", index, len(m.segments))
	}
	if err := s.Check(m.program, &m.config.Limits, 0); err != nil {
		return err
	}
	m.load(s)
	return nil
}

// Finish calls done at once: nothing is in flight.
func (m *model) Finish(s *backend.Step, done func(error)) {
	m.parts.Drop()
	s.Restart()
	done(nil)
}

// run runs phases [from, to) of a segment.
func (m *model) run(seg *segment, from, to int) error {
	if seg.guarded {
		return m.guardedRun(seg, from, to)
	}
	return m.runPhases(seg, from, to)
}

func (m *model) runPhases(seg *segment, from, to int) error {
	for _, ph := range seg.phases[from:to] {
		m.device.pool.until(m.stop, ph, ph.chunks())
		if m.failed.Load() {
			return m.takeFailure(seg)
		}
		if m.stop != nil && m.stop.Load() {
			return backend.ErrStopped
		}
	}
	return nil
}

// errFault is the error for weights whose mapped file cannot be read any more.
var errFault = fmt.Errorf("%w: the model's file was truncated or its disk fails: restore it and start again",
	backend.ErrWeights)

// guardedRun is runPhases for weights in a mapped file, whose pages may be gone. The pool's workers always expect that.
func (m *model) guardedRun(seg *segment, from, to int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !isFault(r) {
				panic(r)
			}
			err = fmt.Errorf("%s: %w", seg.name, errFault)
		}
	}()
	return m.runPhases(seg, from, to)
}

// isFault says whether a recovered panic, here or of a worker, is an access to unreadable memory.
func isFault(recovered any) bool {
	if w, ok := recovered.(*workerPanic); ok {
		recovered = w.value
	}
	_, ok := recovered.(interface{ Addr() uintptr })
	return ok
}
