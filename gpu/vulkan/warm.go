//go:build cgo && linux

package vulkan

import (
	"runtime"
	"sync"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// warm compiles the kernels of steps, several at once: one alone takes tenths of a second. For usual steps that is done
// while weights are loaded, to which a quarter of the processors is left. What fails here is told when it is needed.
func (m *model) warm(shapes []shape) {
	work := make(chan func(x *recorder) error)
	var workers sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)*3/4) {
		workers.Go(func() { m.compileAll(work) })
	}
	for i := range shapes {
		sh := &shapes[i]
		sh.to = len(m.program.Segments) - 1
		for j := range m.launches {
			l := &m.launches[j]
			work <- func(x *recorder) error {
				x.shape, x.wanted, x.n = sh, l.wanted, sh.rows
				if l.wanted {
					x.n = sh.wanted
				}
				if l.idle != nil && l.idle(x) {
					return nil
				}
				return l.record(x)
			}
		}
		work <- func(x *recorder) error {
			x.shape = sh
			return m.recordEnd(x)
		}
	}
	close(work)
	workers.Wait()
}

// usual is the shapes that steps have: one row, a whole prompt, then what lies between them, for a prompt may be taken
// in smaller parts, and several sequences have a row each.
func (m *model) usual() []shape {
	full, samples := m.capacity(false), m.device.d.Facts.Has.Float64
	of := func(rows, wanted int, alone bool) shape {
		sh := shape{rows: rows, wanted: wanted, prompt: m.apart && !alone, alone: alone, draws: true, logits: true,
			samples: samples}
		if len(m.program.States) > 0 {
			sh.spans = 1
		}
		return sh
	}
	shapes := []shape{of(1, 1, true), of(full, 1, false)}
	for rows := rowClass(full / 2); rows > 1; rows /= 2 {
		shapes = append(shapes, of(rowClass(rows), 1, false))
	}
	for rows := 2; rows <= min(full, m.capacity(true), fewColumns); rows *= 2 {
		shapes = append(shapes, of(rows, rows, true))
	}
	return shapes
}

// compileAll records into nothing: that compiles what it records.
func (m *model) compileAll(work <-chan func(x *recorder) error) {
	r, err := m.device.queue.scratch()
	if err != nil {
		for range work { // it is told when a step needs it
		}
		return
	}
	x := &recorder{r: r, k: m.device.kernels, m: m, s: m.slots[0], dry: true}
	for f := range work {
		if !m.closing.Load() {
			_ = f(x)
		}
	}
	m.device.queue.close(r)
}

// scratch is a recording that is never ended.
func (q *queue) scratch() (*vk.Recording, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.d.Record(0)
}
