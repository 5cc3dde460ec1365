package tiers

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/place"
)

// Messages that the pool accepts from uploaders, beside Flush.
type (
	// lease asks for a slab; it is answered by granted, in order of asking.
	lease struct {
		by    string
		gen   uint64
		reply run.Edge[granted]
	}
	// release gives a slab back.
	release struct {
		by   string
		gen  uint64
		slab int
	}
	// settled says that nobody touches slabs any more that were leased in an older generation.
	settled struct {
		by  string
		gen uint64
	}
)

// granted answers lease: the slab is the receiver's until it releases it.
type granted struct {
	gen  uint64
	slab int
}

func (*lease) Late()   {}
func (*release) Late() {}
func (*settled) Late() {}
func (*granted) Late() {}

// pool leases the page-locked slabs through which weights travel, to any number of uploaders. The memory is the
// arena's; the pool holds only which slabs are free.
type pool struct {
	system  *run.System
	out     poolEdges
	again   bool // an older incarnation has leased slabs
	free    []int
	users   map[string]*leases
	settled int // users that hold nothing of older generations or incarnations
	waiting []*lease
}

// leases are the slabs that one uploader holds.
type leases struct {
	gen     uint64
	settled bool
	slabs   []int
}

// restarted says that its sender has lost its state; whoever hears it asks again.
type restarted = run.Restarted[struct{}]

// poolEdges are the pool's edges: one to each uploader.
type poolEdges struct{ restarted []run.Edge[restarted] }

func newPool(s *run.System, out poolEdges, incarnation int) *pool {
	p := &pool{system: s, out: out, again: incarnation > 0, users: make(map[string]*leases)}
	for i := range place.Slabs {
		p.free = append(p.free, i)
	}
	return p
}

func (p *pool) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		for _, user := range p.out.restarted {
			if p.again {
				user.Send(&restarted{})
			}
		}
	case *run.Flush:
		p.begin(m.Of.Id, m.Gen)
		m.Done()
	case *settled:
		p.settle(m)
	case *lease:
		if p.of(m.by, m.gen) != nil {
			p.waiting = append(p.waiting, m)
			p.grant()
		}
	case *release:
		if u := p.of(m.by, m.gen); u != nil {
			u.slabs = slices.DeleteFunc(u.slabs, func(slab int) bool { return slab == m.slab })
			p.free = append(p.free, m.slab)
			p.grant()
		}
	default:
		p.system.Lifecycle(c)
	}
}

// of returns the leases of an uploader in a generation; nil: its present generation is another one.
func (p *pool) of(uploader string, gen uint64) *leases {
	if u := p.users[uploader]; u != nil && u.gen == gen {
		return u
	}
	return nil
}

// begin starts an uploader's generation. Its slabs may still be written to, until it says that it has settled.
func (p *pool) begin(uploader string, gen uint64) {
	u := p.users[uploader]
	if u == nil {
		u = &leases{}
		p.users[uploader] = u
	} else if u.settled {
		p.settled--
	}
	u.gen, u.settled = gen, false
	p.waiting = slices.DeleteFunc(p.waiting, func(l *lease) bool { return l.by == uploader })
}

// settle takes back what an uploader held in older generations.
func (p *pool) settle(m *settled) {
	u := p.of(m.by, m.gen)
	if u == nil || u.settled {
		return
	}
	p.free = append(p.free, u.slabs...)
	u.settled, u.slabs = true, u.slabs[:0]
	p.settled++
	p.grant()
}

// grant answers those who wait. After a restart it waits until all have settled: which slabs they held, nobody knows.
func (p *pool) grant() {
	for len(p.waiting) > 0 && len(p.free) > 0 && (!p.again || p.settled == len(p.out.restarted)) {
		last, first := len(p.free)-1, p.waiting[0]
		u := p.users[first.by]
		u.slabs = append(u.slabs, p.free[last])
		first.reply.Send(&granted{first.gen, p.free[last]})
		p.free, p.waiting = p.free[:last], slices.Delete(p.waiting, 0, 1)
	}
}
