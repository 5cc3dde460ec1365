package exec

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// border is the memory and the recordings by which values cross between this device and others.
type border struct {
	rows   *driver.Buffer // rows of the value that crosses; nil: none has yet
	shared imported       // memory of the program that other devices copy to and from, too
	made   map[crossing]driver.Recording
}

// crossing is the key of a recording: so many rows of a value, copied to this device or from it, at an offset in memory
// that is shared or in the device's own.
type crossing struct {
	value  ir.Value
	rows   int
	in     bool
	shared bool
	at     uint64
}

// In copies a value of another device to where the segment that reads it expects it.
func (m *model) In(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, true)
}

// Out copies a value that a segment computed to the host.
func (m *model) Out(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, false)
}

// cross copies rows through memory that host and device reach, and waits: values between devices travel through the
// host. Where the device copies to and from the rows themselves, nothing else copies them: those of a prompt take
// milliseconds. In a step that generates, dozens of values cross. So for few rows memory and recordings are kept:
// page-locked memory takes milliseconds to allocate.
func (m *model) cross(v ir.Value, s *backend.Step, rows []float32, in bool) error {
	if v < 0 || int(v) >= len(m.layout.program.Widths) || !m.crosses(v) {
		return fmt.Errorf("value %d crosses no border of what is computed here", v)
	}
	n, width := s.Height(m.layout.program, v), m.layout.program.Widths[v]
	if len(rows) != n*width {
		return fmt.Errorf("value %d: %d numbers, want %d rows of %d", v, len(rows), n, width)
	}
	p := m.layout.plan.Place(v)
	if err := m.flush(m.ring.of(s)); err != nil {
		return err
	}
	if shared := &m.border.shared; p.Row == width && shared.holds(bytesOf(rows)) {
		return m.carry(crossing{v, n, in, true, shared.at(bytesOf(rows))})
	}
	if err := m.layBorder(); err != nil {
		return err
	}
	here := words[float32](m.border.rows, 0, n*p.Row)
	if in {
		clear(here)
		for r := range n {
			copy(here[r*p.Row+p.From:][:width], rows[r*width:])
		}
	}
	if err := m.carry(crossing{value: v, rows: n, in: in}); err != nil {
		return err
	}
	if !in {
		for r := range n {
			copy(rows[r*width:][:width], here[r*p.Row+p.From:])
		}
	}
	return nil
}

// carry has the device copy rows, and waits until it has.
func (m *model) carry(c crossing) error {
	q, r := m.device.queue, m.border.made[c]
	if r == nil {
		var err error
		r, err = q.record(driver.Compute, 0, func(r driver.Recording) error { m.recordCrossing(r, c); return nil })
		if err != nil {
			return err
		}
		if c.rows > kernel.FewColumns { // of prompts: their numbers of rows are too many to keep recordings
			defer q.close(r)
		} else {
			m.border.made[c] = r
		}
	}
	value, err := q.submit(0, r)
	if err == nil {
		err = q.wait(value)
	}
	return err
}

func (m *model) recordCrossing(r driver.Recording, c crossing) {
	p := m.layout.plan.Place(c.value)
	at, size := uint64(p.At-4*p.From), uint64(4*c.rows*p.Row)
	rows := m.border.rows
	if c.shared {
		rows = m.border.shared.buffer
	}
	r.BarrierAll()
	if c.in {
		r.Copy(m.layout.scratch, at, rows, c.at, size)
	} else {
		r.Copy(rows, c.at, m.layout.scratch, at, size)
	}
	r.BarrierAll()
	r.BarrierToHost()
}

// layBorder takes memory for the most rows of the widest value that crosses.
func (m *model) layBorder() (err error) {
	if m.border.rows != nil {
		return nil
	}
	widest := 0
	for v := range m.layout.program.Widths {
		if m.crosses(ir.Value(v)) {
			widest = max(widest, m.layout.plan.Place(ir.Value(v)).Row)
		}
	}
	m.border.rows, err = m.layout.memory.raw(driver.Staging, uint64(4*m.config.MaxRows*widest), "values between devices")
	return err
}

// crosses says whether a segment that is computed here hands on a value or takes it.
func (m *model) crosses(v ir.Value) bool {
	p := m.layout.program
	for i := range p.Segments {
		if m.config.Computes(i) && (slices.Contains(p.Segments[i].Carries, v) || slices.Contains(p.Takes(i), v)) {
			return m.layout.plan.Place(v).Row > 0
		}
	}
	return false
}

func bytesOf(rows []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), 4*len(rows))
}
