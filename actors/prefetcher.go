package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/place"
)

// cargo is what has to be brought to a device for one model: its homes, all of them. Nobody changes it.
type cargo struct {
	guest *guest
	model backend.Model
	homes []place.Home
}

// item is a group of weights on its way home.
type item struct {
	of   *cargo
	home int
}

// resident, from the uploader: every byte of the group is on the device.
type resident struct{ item }

func (*resident) Late() {}

// prefetcher decides which groups of weights travel next. Every group's home is the device here, so it asks for
// all of them once, in program order and one model after the other, a few ahead of the one that is arriving. Its
// incarnations share its state: weights that a running step reads must not be fetched again.
type prefetcher struct {
	system      *run.System
	out         prefetcherEdges
	incarnation int // of the device that the weights are for
	all         []*cargo
	next        item          // what was not asked for, in all[0]
	pending     map[item]bool // groups that were, and have not arrived
}

func (p *prefetcher) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started, *restarted:
		for x := range p.pending { // asking twice does no harm
			p.out.fetch.Send(&fetch{x})
		}
		p.fetch()
	case *resident:
		if p.pending[m.item] {
			p.arrived(m.item)
		}
	default:
		p.system.Lifecycle(c)
	}
}

func (p *prefetcher) arrived(x item) {
	delete(p.pending, x)
	p.out.fetch.Give()
	p.fetch()
	for y := range p.pending {
		if y.of == x.of {
			return
		}
	}
	if len(p.all) == 0 || p.all[0] != x.of {
		p.out.loaded.Send(&loaded{x.of.guest, p.incarnation})
	}
}

// fetch asks for the next groups. A model is taken off the list when all of its groups were asked for.
func (p *prefetcher) fetch() {
	for len(p.all) > 0 {
		if p.next.home == len(p.all[0].homes) {
			p.all, p.next = p.all[1:], item{}
			continue
		}
		if !p.out.fetch.Take() {
			return
		}
		p.next.of = p.all[0]
		p.pending[p.next] = true
		p.out.fetch.Send(&fetch{p.next})
		p.next.home++
	}
}
