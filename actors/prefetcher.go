package actors

import "github.com/asynkron/protoactor-go/actor"

// resident, from the uploader: every byte of the group is on the device.
type resident struct{ group int }

func (*resident) late() {}

// prefetcher decides which groups of weights travel next. Every group's home is the device here, so it asks for
// all of them once, in program order, a few ahead of the one that is arriving. Its incarnations share its state:
// weights that a running step reads must not be fetched again.
type prefetcher struct {
	*core
	incarnation int          // of the device that the weights are for
	next        int          // first group that was not asked for
	pending     map[int]bool // groups that were, and have not arrived
}

func (p *prefetcher) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started, *restarted:
		for group := range p.pending { // asking twice does no harm
			c.Send(p.uploader, &fetch{group})
		}
		p.fetch(c)
	case *resident:
		if !p.pending[m.group] {
			return
		}
		delete(p.pending, m.group)
		p.fetch(c)
		if len(p.pending) == 0 {
			c.Send(p.device, &loaded{p.incarnation})
		}
	default:
		p.lifecycle(c)
	}
}

func (p *prefetcher) fetch(c actor.Context) {
	for len(p.pending) < fetchAhead && p.next < len(p.groups) {
		p.pending[p.next] = true
		c.Send(p.uploader, &fetch{p.next})
		p.next++
	}
}
