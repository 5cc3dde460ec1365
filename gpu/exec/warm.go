package exec

import (
	"runtime"
	"sync"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
)

// warm compiles the kernels of steps of some shapes, several at a time, since one takes tenths of a second. For usual
// shapes that is done while weights are loaded, so a quarter of the cores is left to loading. An error here is not
// reported: the step that needs the kernel compiles it again.
func (m *model) warm(shapes []plan.Shape) {
	work := make(chan kernel.Launch)
	var workers sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)*3/4) {
		workers.Go(func() { m.compileAll(work) })
	}
	places := m.places(m.ring.entries[0], nil)
	places.Matrix = nil // groups may be in no slot yet
	for i := range shapes {
		shapes[i].To = len(m.layout.program.Segments) - 1
		for _, c := range m.layout.plan.Stream(&shapes[i], places) {
			work <- c.Launch
		}
	}
	close(work)
	workers.Wait()
}

// usual lists the shapes that steps usually have: one row, a whole prompt, and those between, since a prompt may be
// taken in smaller parts, and several sequences have a row each.
func (m *model) usual() []plan.Shape {
	p := m.layout.plan
	full := p.Capacity(false)
	of := func(rows, wanted int, alone bool) plan.Shape {
		sh := plan.Shape{Rows: rows, Wanted: wanted, Prompt: m.layout.apart && !alone, Alone: alone, Draws: true,
			Logits: true, Samples: true}
		if len(m.layout.program.States) > 0 {
			sh.Spans = 1
		}
		return sh
	}
	shapes := []plan.Shape{of(1, 1, true), of(full, 1, false)}
	for rows := plan.RowClass(full / 2); rows > 1; rows /= 2 {
		shapes = append(shapes, of(plan.RowClass(rows), 1, false))
	}
	for rows := 2; rows <= min(full, p.Capacity(true), kernel.FewColumns); rows *= 2 {
		shapes = append(shapes, of(rows, rows, true))
	}
	return shapes
}

// compileAll launches kernels into a recording that is never submitted: to launch a kernel compiles it.
func (m *model) compileAll(work <-chan kernel.Launch) {
	r, err := m.device.queue.unended()
	if err != nil {
		for range work { // the first step gets the same error
		}
		return
	}
	for l := range work {
		if !m.closing.Load() {
			_ = m.device.kernels.Launch(r, l)
		}
	}
	m.device.queue.close(r)
}

// unended is a recording that is never ended.
func (q *queue) unended() (driver.Recording, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.d.Record(driver.Compute, 0)
}
