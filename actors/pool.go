package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// All that the pool accepts, from the uploader: flush, and
type (
	// lease asks for a slab; it is answered by granted, in order of asking.
	lease struct{ gen uint64 }
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
	incarnation int
	gen         uint64
	free        []int
	waiting     int
}

func (p *pool) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if p.incarnation > 0 {
			c.Send(p.uploader, &restarted{From: partyPool})
		}
	case *run.Flush:
		p.gen, p.waiting, p.free = m.Gen, 0, p.free[:0]
		for i := range slabCount {
			p.free = append(p.free, i)
		}
		c.Send(p.uploader, &run.Flushed{Gen: m.Gen, From: partyPool})
	case *lease:
		if m.gen == p.gen {
			p.waiting++
			p.grant(c)
		}
	case *release:
		if m.gen == p.gen {
			p.free = append(p.free, m.slab)
			p.grant(c)
		}
	default:
		p.system.Lifecycle(c)
	}
}

func (p *pool) grant(c actor.Context) {
	for p.waiting > 0 && len(p.free) > 0 {
		last := len(p.free) - 1
		c.Send(p.uploader, &granted{p.gen, p.free[last]})
		p.free = p.free[:last]
		p.waiting--
	}
}
