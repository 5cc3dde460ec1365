package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// model is a compiled program with its memory.
type model struct {
	execution
	backend.Areas             // blocks of caches
	program       *ir.Program // all of it
	segments      []segment
	weights       []weight
	caches        []*cache // by layer; nil if no segment that is computed here uses it
	states        []state
	rooms         []room // by slot; empty if every group has a slot of its own
	where         []int  // by group: its slot among rooms; 0 if it has its own; or absent
	parts         backend.Parts
	named         []bool  // by group: execution.part while a part runs
	chosen        []int32 // argument of Work.Chosen

	regions
	ring    []*backend.Step
	borders map[ir.Value]place // places of values that cross to other devices, or come from them
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

func (m *model) Steps() []*backend.Step { return m.ring }

func (m *model) Memory() backend.Memory {
	return backend.Memory{
		Weights: int64(len(m.weightMemory) + len(m.roomMemory)),
		KV:      int64(len(m.kvMemory) + len(m.stateMemory)),
		Scratch: int64(len(m.scratchMemory) + len(m.stripMemory) + len(m.logitMemory)),
	}
}

func (m *model) Close() error {
	err := m.free()
	*m = model{}
	return err
}

// In copies a value from another device to its place here.
func (m *model) In(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, func(here, there []float32) { copy(here, there) })
}

// Out copies the value that a segment computed.
func (m *model) Out(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, func(here, there []float32) { copy(there, here) })
}

func (m *model) cross(v ir.Value, s *backend.Step, rows []float32, move func(here, there []float32)) error {
	at, ok := m.borders[v]
	if !ok {
		return fmt.Errorf("value %d crosses no border of what is computed here", v)
	}
	n := s.Height(m.program, v)
	if len(rows) != n*at.width {
		return fmt.Errorf("value %d: %d numbers, want %d rows of %d", v, len(rows), n, at.width)
	}
	m.step, m.logits = s, s.Logits
	for r := range n {
		move(m.at(&at, r), rows[r*at.width:][:at.width])
	}
	return nil
}
