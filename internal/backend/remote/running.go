package remote

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// running is the step that a guest's frames are about.
type running struct {
	program *ir.Program
	config  backend.Config
	step    *backend.Step
	begun   bool  // and not finished
	err     error // of it so far: nothing more of it is computed
	rows    []float32
	stop    atomic.Bool // nobody waits for it any more
}

// step does the deeds of a frame in their order. After one that fails, only the end is done; its error is the answer.
func (g *guest) step(f []byte, b *body) ([]byte, error) {
	g.lender.computing.Lock()
	defer g.lender.computing.Unlock()
	r, finished := &g.running, false
	for len(b.rest) > 0 && b.err == nil && !finished {
		d := deed(b.byte())
		if d == deedFinish {
			finished = true
			break
		}
		var err error
		if f, err = g.deed(f, d, b); r.err == nil {
			r.err = err
		}
	}
	if r.err == nil {
		r.err = b.end()
	}
	err := r.err
	if b.err != nil {
		err = fmt.Errorf("%w: %w", errBroken, b.err)
	}
	if !finished {
		return f, err
	}
	wants := err == nil && r.config.Computes(len(r.program.Segments)-1) && r.begun
	if ended := g.finish(); err == nil {
		err = ended
	}
	if wants && err == nil {
		f = floats(f, r.step.Logits[:len(r.step.Wanted)*r.program.OutputWidth()])
	}
	return f, err
}

// finish ends the step, and waits until it has ended.
func (g *guest) finish() error {
	r, done := &g.running, make(chan error, 1)
	g.model.Finish(r.step, func(err error) { done <- err })
	r.begun, r.err = false, nil
	return <-done
}

// deed does one of them, unless the step has failed: then it only reads it.
func (g *guest) deed(f []byte, d deed, b *body) ([]byte, error) {
	r := &g.running
	switch {
	case d == deedBegin && !r.begun:
		if b.step(r.step); b.err == nil {
			r.begun = true
			return f, r.step.Check(r.program, &r.config.Limits, 0)
		}
	case d == deedBegin || !r.begun:
		b.err = fmt.Errorf("%w: a step begins in another one, or not at all", errGarbage)
	case d == deedRun:
		segment, chosen := b.number(), b.byte() != 0
		if b.err == nil && r.err == nil {
			return g.run(f, segment, chosen)
		}
	case d == deedIn:
		v := ir.Value(b.number())
		n := b.count(4)
		r.rows = slices.Grow(r.rows[:0], n)[:n]
		if b.floats(r.rows); b.err == nil && r.err == nil {
			return f, g.model.In(v, r.step, r.rows)
		}
	case d == deedOut:
		v := ir.Value(b.number())
		if b.err == nil && r.err == nil {
			return g.out(f, v)
		}
	default:
		b.err = fmt.Errorf("%w: deed %d", errGarbage, d)
	}
	return f, nil
}

// run runs a segment, and answers with which experts it chose if that is asked for.
func (g *guest) run(f []byte, segment int, chosen bool) ([]byte, error) {
	r := &g.running
	w := backend.Work{Segment: segment, Whole: true, Stop: &r.stop}
	told := make(chan struct{})
	if chosen {
		w.Chosen = func(experts []int32) {
			f = numbers(f, experts)
			close(told)
		}
	}
	err := g.model.Run(w, r.step)
	if chosen && err == nil {
		<-told
	}
	return f, err
}

func (g *guest) out(f []byte, v ir.Value) ([]byte, error) {
	r := &g.running
	if v < 0 || int(v) >= len(r.program.Widths) {
		return f, fmt.Errorf("value %d of %d", v, len(r.program.Widths))
	}
	n := r.step.Height(r.program, v) * r.program.Widths[v]
	r.rows = slices.Grow(r.rows[:0], n)[:n]
	if err := g.model.Out(v, r.step, r.rows); err != nil {
		return f, err
	}
	return floats(f, r.rows), nil
}

// carry copies blocks, and answers with those that are wanted.
func (g *guest) carry(f []byte, b *body) ([]byte, error) {
	var all []backend.Carriage
	total := len(f)
	for len(b.rest) > 0 && b.err == nil {
		c := backend.Carriage{Class: b.number(), Block: int32(b.number()), Out: b.byte() != 0}
		if c.Class < 0 || c.Class >= len(g.blocks) {
			return f, fmt.Errorf("cache class %d of %d", c.Class, len(g.blocks))
		}
		if n := g.blocks[c.Class]; !c.Out {
			c.Memory = b.take(n)
		} else if total += n; total > most[kindCarry] {
			return f, fmt.Errorf("%w: more blocks than a message may have", errGarbage)
		} else {
			at := len(f)
			f = append(f, make([]byte, n)...)
			c.Memory = f[at:]
		}
		all = append(all, c)
	}
	if b.err != nil {
		return f, b.err
	}
	at := headerBytes + 1 // f may have moved as it grew
	for i := range all {
		if all[i].Out {
			n := g.blocks[all[i].Class]
			all[i].Memory, at = f[at:at+n:at+n], at+n
		}
	}
	g.lender.computing.Lock()
	defer g.lender.computing.Unlock()
	return f, g.model.Carry(all)
}
