package actors

import "github.com/asynkron/protoactor-go/actor"

// resident, from the uploader: every byte of the group is on the device.
type resident struct{ group int }

func (*resident) Late() {}

// prefetcher decides which groups of weights travel next. Every group's home is the device here, so it asks for
// all of them once, in program order, a few ahead of the one that is arriving. Its incarnations share its state:
// weights that a running step reads must not be fetched again.
type prefetcher struct {
	*core
	out         prefetcherEdges
	incarnation int          // of the device that the weights are for
	next        int          // first group that was not asked for
	pending     map[int]bool // groups that were, and have not arrived
}

func (p *prefetcher) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started, *restarted:
		for group := range p.pending { // asking twice does no harm
			p.out.fetch.Send(&fetch{group})
		}
		p.fetch()
	case *resident:
		if !p.pending[m.group] {
			return
		}
		delete(p.pending, m.group)
		p.out.fetch.Give()
		p.fetch()
		if len(p.pending) == 0 {
			p.out.loaded.Send(&loaded{p.incarnation})
		}
	default:
		p.system.Lifecycle(c)
	}
}

func (p *prefetcher) fetch() {
	for p.next < len(p.groups) && p.out.fetch.Take() {
		p.pending[p.next] = true
		p.out.fetch.Send(&fetch{p.next})
		p.next++
	}
}
