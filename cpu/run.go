package cpu

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Enqueue runs the phases of a segment one after another. It allocates nothing unless it fails.
func (m *model) Enqueue(index int, s *backend.Step) error {
	if index < 0 || index >= len(m.segments) || !m.config.Computes(index) {
		return fmt.Errorf("segment %d of %d is not computed here", index, len(m.segments))
	}
	if err := s.Check(m.program, &m.config, 0); err != nil {
		return err
	}
	m.load(s)
	if m.config.InPlace != nil {
		return m.guarded(&m.segments[index])
	}
	return m.runPhases(&m.segments[index])
}

// Finish has nothing to wait for.
func (*model) Finish(_ *backend.Step, done func(error)) { done(nil) }

func (m *model) runPhases(seg *segment) error {
	for _, ph := range seg.phases {
		m.device.pool.do(ph, ph.chunks())
		if m.failed.Load() {
			return m.takeFailure(seg)
		}
	}
	return nil
}

// errFault is the error of weights that cannot be read where they lie.
var errFault = errors.New("a page of the weights cannot be read: the model's file was truncated or its disk fails: " +
	"restore it and start again")

// guarded is runPhases where the pages of a file may be gone. The pool's workers are prepared for that anyway.
func (m *model) guarded(seg *segment) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !isFault(r) {
				panic(r)
			}
			err = fmt.Errorf("%s: %w", seg.name, errFault)
		}
	}()
	return m.runPhases(seg)
}

// isFault says whether what was recovered, here or by a worker, is an access to memory that is not there.
func isFault(recovered any) bool {
	if w, ok := recovered.(*workerPanic); ok {
		recovered = w.value
	}
	_, ok := recovered.(interface{ Addr() uintptr })
	return ok
}
