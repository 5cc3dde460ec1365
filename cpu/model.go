package cpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// model is a compiled program with its memory.
type model struct {
	device   *device
	config   backend.Config
	program  *ir.Program // all of it
	segments []segment
	weights  []weight
	caches   []cache

	populated sync.WaitGroup // the weights' pages are being taken from the system until then, or until closing
	closing   atomic.Bool

	weightMemory, kvMemory, scratchMemory, stripMemory, logitMemory []byte

	ring    []*backend.Step
	borders map[ir.Value]place // of values that cross to other devices, or come from them

	scratch  []float32    // values of the step and prepared activations, by place
	ropes    []*ropeTable // of all layers, without repetition
	workers  []workspace  // by worker
	split    split
	dispatch dispatch

	// The running step.
	step   *backend.Step
	pos    []int // by row
	span   []int // by row
	logits []float32

	failed  atomic.Bool
	mu      sync.Mutex
	failure error // the first one of the segment; under mu
}

// at is row r of a place.
func (m *model) at(p *place, r int) []float32 {
	at := p.off + r*p.stride
	return m.area(p)[at : at+p.width : at+p.width]
}

// area is the memory that a place is in.
func (m *model) area(p *place) []float32 {
	if p.logits {
		return m.logits
	}
	return m.scratch
}

// rows is the number of rows of a phase in the running step.
func (m *model) rows(wanted bool) int {
	if wanted {
		return len(m.step.Wanted)
	}
	return len(m.step.Tokens)
}

// fail records the first error of a segment. Chunks that run meanwhile finish.
func (m *model) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failure == nil {
		m.failure = err
	}
	m.failed.Store(true)
}

// RowGrain is the height of a tile.
func (*model) RowGrain() int { return kernels.TileRows }

func (m *model) Upload(r ir.Ref, row int, data []byte) error {
	if r < 0 || int(r) >= len(m.weights) {
		return fmt.Errorf("weight %d of %d", r, len(m.weights))
	}
	if m.weights[r].name == "" {
		return fmt.Errorf("weight %d is of no segment that is computed here", r)
	}
	return m.weights[r].upload(m.device.set, row, data)
}

// Place has nothing to do: every group has its own slot.
func (*model) Place(group, slot int) error { return nil }

func (m *model) Steps() []*backend.Step { return m.ring }

func (m *model) Memory() backend.Memory {
	return backend.Memory{
		Weights: int64(len(m.weightMemory)),
		KV:      int64(len(m.kvMemory)),
		Scratch: int64(len(m.scratchMemory) + len(m.stripMemory) + len(m.logitMemory)),
	}
}

func (m *model) Close() error {
	m.closing.Store(true)
	m.populated.Wait()
	err := errors.Join(mem.Free(m.weightMemory), mem.Free(m.kvMemory), mem.Free(m.scratchMemory), mem.Free(m.stripMemory),
		mem.Free(m.logitMemory))
	*m = model{}
	return err
}

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

// In copies a value from elsewhere to where the segment that reads it expects it.
func (m *model) In(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, func(here, there []float32) { copy(here, there) })
}

// Out copies what a segment computed.
func (m *model) Out(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, func(here, there []float32) { copy(there, here) })
}

func (m *model) cross(v ir.Value, s *backend.Step, rows []float32, move func(here, there []float32)) error {
	at, ok := m.borders[v]
	if !ok {
		return fmt.Errorf("value %d crosses no border of what is computed here", v)
	}
	if len(rows) != len(s.Tokens)*at.width {
		return fmt.Errorf("value %d: %d numbers, want %d rows of %d", v, len(rows), len(s.Tokens), at.width)
	}
	for r := range s.Tokens {
		move(m.at(&at, r), rows[r*at.width:][:at.width])
	}
	return nil
}

func (m *model) runPhases(seg *segment) error {
	for _, ph := range seg.phases {
		m.device.pool.do(ph, ph.chunks())
		if m.failed.Load() {
			return m.takeFailure(seg)
		}
	}
	return nil
}

// load finds the position and the span of every row.
func (m *model) load(s *backend.Step) {
	m.step, m.logits = s, s.Logits
	for i := range s.Spans {
		span := &s.Spans[i]
		for j := range span.Rows {
			m.pos[span.Row+j], m.span[span.Row+j] = span.Pos+j, i
		}
	}
}

func (m *model) takeFailure(seg *segment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := fmt.Errorf("%s: %w", seg.name, m.failure)
	m.failure = nil
	m.failed.Store(false)
	return err
}
