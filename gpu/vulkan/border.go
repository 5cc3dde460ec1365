//go:build cgo && linux

package vulkan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// crossing is how rows of a value cross a border: in, or out.
type crossing struct {
	value ir.Value
	rows  int
	in    bool
}

// place is where a value lies that crosses a border.
func (m *model) place(v ir.Value) place {
	p := m.borders[m.values.Root[v]]
	p.from += m.values.From[v]
	return p
}

// In copies a value to where the segment that reads it expects it.
func (m *model) In(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, true)
}

// Out copies what a segment computed.
func (m *model) Out(v ir.Value, s *backend.Step, rows []float32) error {
	return m.cross(v, s, rows, false)
}

// cross moves rows through memory that both reach, and waits: values between devices travel by the host. In a step of
// answers dozens do, so for few rows nothing is made anew: to take page-locked memory costs milliseconds.
func (m *model) cross(v ir.Value, s *backend.Step, rows []float32, in bool) error {
	if v < 0 || int(v) >= len(m.program.Widths) || m.place(v).b == nil || !m.crosses(v) {
		return fmt.Errorf("value %d crosses no border of what is computed here", v)
	}
	n, width := len(s.Tokens), m.program.Widths[v]
	if len(rows) != n*width {
		return fmt.Errorf("value %d: %d numbers, want %d rows of %d", v, len(rows), n, width)
	}
	p := m.place(v)
	if err := m.flush(m.slot(s)); err != nil {
		return err
	}
	if err := m.layCrossed(); err != nil {
		return err
	}
	here := words[float32](m.crossed, 0, n*stride(p.b))
	if in {
		clear(here)
		for r := range n {
			copy(here[r*stride(p.b)+p.from:][:width], rows[r*width:])
		}
	}
	if err := m.carry(crossing{v, n, in}); err != nil {
		return err
	}
	if !in {
		for r := range n {
			copy(rows[r*width:][:width], here[r*stride(p.b)+p.from:])
		}
	}
	return nil
}

// carry has the device copy rows, and waits until it has.
func (m *model) carry(c crossing) error {
	q, r := m.device.queue, m.crossings[c]
	if r == nil {
		var err error
		if r, err = q.record(0, func(r *vk.Recording) error { m.recordCrossing(r, c); return nil }); err != nil {
			return err
		}
		if c.rows > fewColumns { // of prompts, whose rows are of any number
			defer q.close(r)
		} else {
			m.crossings[c] = r
		}
	}
	value, err := q.submit(0, r)
	if err == nil {
		err = q.wait(value)
	}
	return err
}

func (m *model) recordCrossing(r *vk.Recording, c crossing) {
	p := m.place(c.value)
	at, size := uint64(p.b.Offset), uint64(4*c.rows*stride(p.b))
	r.BarrierAll()
	if c.in {
		r.Copy(m.scratch, at, m.crossed, 0, size)
	} else {
		r.Copy(m.crossed, 0, m.scratch, at, size)
	}
	r.BarrierAll()
	r.BarrierToHost()
}

// layCrossed takes memory for the most rows of the widest value that crosses.
func (m *model) layCrossed() (err error) {
	if m.crossed != nil {
		return nil
	}
	widest := 0
	for v := range m.program.Widths {
		if b := m.place(ir.Value(v)).b; b != nil && m.crosses(ir.Value(v)) {
			widest = max(widest, stride(b))
		}
	}
	m.crossed, err = m.memory.raw(vk.Staging, uint64(4*m.config.MaxRows*widest), "values between devices")
	return err
}

// crosses says whether a value is handed on, or taken, by a segment that is computed here.
func (m *model) crosses(v ir.Value) bool {
	for i := range m.program.Segments {
		if !m.config.Computes(i) {
			continue
		}
		for _, c := range m.program.Segments[i].Carries {
			if c == v {
				return true
			}
		}
		for _, t := range m.program.Takes(i) {
			if t == v {
				return true
			}
		}
	}
	return false
}
