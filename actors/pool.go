package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// All that the pool accepts, from the uploader: flush, and
type (
	// lease asks for a slab; it is answered by granted, in order of asking.
	lease struct {
		gen   uint64
		reply run.Edge[granted]
	}
	// release gives a slab back.
	release struct {
		gen  uint64
		slab int
	}
)

// granted answers lease: the slab is the receiver's until it releases it.
type granted struct {
	gen  uint64
	slab int
}

func (*lease) Late()   {}
func (*release) Late() {}
func (*granted) Late() {}

// pool leases the page-locked slabs through which weights travel. The memory is the arena's; the pool
// holds only which slabs are free.
type pool struct {
	*core
	out         poolEdges
	incarnation int
	gen         uint64
	free        []int
	waiting     []run.Edge[granted] // whose turn is first
}

func (p *pool) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if p.incarnation > 0 {
			p.out.restarted.Send(&restarted{})
		}
	case *run.Flush:
		p.gen, p.waiting, p.free = m.Gen, p.waiting[:0], p.free[:0]
		for i := range slabCount {
			p.free = append(p.free, i)
		}
		m.Done()
	case *lease:
		if m.gen == p.gen {
			p.waiting = append(p.waiting, m.reply)
			p.grant()
		}
	case *release:
		if m.gen == p.gen {
			p.free = append(p.free, m.slab)
			p.grant()
		}
	default:
		p.system.Lifecycle(c)
	}
}

func (p *pool) grant() {
	for len(p.waiting) > 0 && len(p.free) > 0 {
		last := len(p.free) - 1
		p.waiting[0].Send(&granted{p.gen, p.free[last]})
		p.free = p.free[:last]
		p.waiting = slices.Delete(p.waiting, 0, 1)
	}
}
