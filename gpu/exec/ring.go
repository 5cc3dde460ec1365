package exec

import (
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
)

// ring is the steps of a model, each with the memory from which the device reads it.
type ring struct {
	steps   []*backend.Step
	entries []*entry
	draws   int // of the step before
}

// entry is a step of the ring with its memory and recordings.
type entry struct {
	step       *backend.Step
	block      *driver.Buffer // what kernels read of the step: plan.Entry has the layout
	tables     *driver.Buffer // block tables
	result     *driver.Buffer // status, then the drawn ids, then the logits
	experts    entryExperts
	adapters   []*resident // that the step uses
	recordings map[recorded]driver.Recording

	begun     bool
	shape     plan.Shape
	exchanges uint32 // number of the step's first exchange, in a team
	from, to  int    // segments that are enqueued and not submitted; from < 0: none
	value     uint64 // of the queue's timeline when all that was submitted of the step is done; 0: nothing was
	clock     entryClock
}

// recorded is the key of a recording.
type recorded struct {
	plan.Shape
	detail bool // it takes a timestamp after each segment
	tells  bool // it copies the choice of a route to the host, and does nothing else
}

// entryClock is when parts of a step were submitted, and how long they should take.
type entryClock struct {
	timed   []timed       // what was submitted, for the watcher
	moving  int           // group that moves and that the next submission computes with; absent: none
	behind  int           // group whose copy the next submission waits for; absent: none
	begins  time.Time     // time of the step's first submission; zero: there was none
	work    float64       // products of the segments that were submitted whole
	sees    float64       // positions that rows attend to, of all rows
	longest time.Duration // predicted time of the longest submission
	detail  bool          // the observer wants the time of each segment
}

// of is the entry of a step.
func (r *ring) of(s *backend.Step) *entry {
	for _, x := range r.entries {
		if x.step == s {
			return x
		}
	}
	panic("gpu: a step of another model")
}

// layRing makes the ring. If it fails, what it took is freed with the model.
func (m *model) layRing() error {
	b, p, c := m.layout.memory, m.layout.plan, m.config
	width := m.layout.program.OutputWidth()
	tables := 0
	for _, blocks := range c.Blocks {
		tables += blocks * c.Spans()
	}
	for range c.Ring() {
		x := &entry{step: &backend.Step{}, recordings: map[recorded]driver.Recording{}, from: -1}
		m.ring.entries, m.ring.steps = append(m.ring.entries, x), append(m.ring.steps, x.step)
		logits := p.ResultLogits()
		for _, take := range []struct {
			to     **driver.Buffer
			memory driver.Memory
			bytes  int
			what   string
		}{
			{&x.block, driver.Stepwise, p.Entry.Bytes, "step"},
			{&x.tables, driver.Stepwise, 4 * max(1, tables), "block tables"},
			{&x.result, driver.Staging, logits + 4*c.MaxWanted*width, "logits"},
		} {
			var err error
			if *take.to, err = b.take(take.memory, uint64(take.bytes), take.what); err != nil {
				return err
			}
			b.account.Scratch += int64((*take.to).Size)
		}
		x.step.Logits = words[float32](x.result, logits, c.MaxWanted*width)
		if err := m.layChoices(x); err != nil {
			return err
		}
	}
	return nil
}

// places says where the memory lies that a recording of a step uses; r is the region of a part of experts, or nil.
func (m *model) places(x *entry, r *region) *plan.Places {
	l := m.layout
	at := &plan.Places{Scratch: l.scratch.Address, Drawn: l.drawn.Address, Best: l.best.Address, Entry: x.block.Address,
		Tables: x.tables.Address, Result: x.result.Address, Box: m.mates.box}
	if r != nil {
		at.Experts, at.Listed = r.b.Address, r.b.Address+uint64(r.ids)
	}
	at.Matrix = m.weights.at(at.Experts)
	return at
}
