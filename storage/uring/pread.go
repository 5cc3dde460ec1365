package uring

import (
	"sync"

	"github.com/sluice-ai/sluice/internal/system"
)

// preadWorkers bounds the reads under way without io_uring: enough to keep a disk busy with large reads; each holds a
// thread while it waits.
const preadWorkers = 4

// preads is the engine of systems without io_uring.
type preads struct {
	todo, done chan *op // as large as the ring is deep: sending never blocks
	workers    sync.WaitGroup
}

func newPreads(depth int) *preads {
	p := &preads{todo: make(chan *op, depth), done: make(chan *op, depth)}
	for range min(preadWorkers, depth) {
		p.workers.Go(func() {
			for o := range p.todo {
				o.n, o.err = system.ReadAt(o.handle(), o.rest(), o.from+int64(o.got))
				p.done <- o
			}
		})
	}
	return p
}

func (p *preads) start(o *op) { p.todo <- o }

func (p *preads) flush() error { return nil }

func (p *preads) register([]byte) error { return nil }

func (p *preads) kind() string { return "pread" }

func (p *preads) next(wait bool) (*op, error) {
	if wait {
		return <-p.done, nil
	}
	select {
	case o := <-p.done:
		return o, nil
	default:
		return nil, nil
	}
}

func (p *preads) close() error {
	close(p.todo)
	p.workers.Wait()
	return nil
}
