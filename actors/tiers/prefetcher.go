package tiers

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Messages that the prefetcher accepts, beside *restarted and *arrived from the uploader.
type (
	// Want, from the device, asks for a group to be brought to a slot; Landed answers. Sent again, it makes the item
	// more urgent, or forsakes it: a forsaken guess that has not begun is dropped, and Landed says so.
	Want struct {
		item
		urgency urgency
	}
	// Bring, from the device, asks for the weights of a model that has entered, after those of the others.
	Bring struct{ All *Cargo }
)

type ( // what it says to the device
	// Landed answers Want: the group is in its slot, or Err says why not.
	Landed struct {
		item
		Err error
		Way Way
	}
	// Loaded says that all weights of a model are there that are brought once, or why they will not be. When the
	// device was lost that is said once, for the model whose weights met it first.
	Loaded struct {
		Of          *Cargo
		Incarnation int // of the device
		Err         error
	}
)

func (*Bring) Late()  {}
func (*Want) Late()   {}
func (*Landed) Late() {}
func (*Loaded) Late() {}

// Of is the cargo that the group belongs to.
func (m *Landed) Of() *Cargo { return m.of }

// Group is the group's index in it.
func (m *Landed) Group() int { return m.group }

// errForsaken is the error of a guess that was forsaken before it had begun to travel.
var errForsaken = errors.New("no longer wanted")

// Forsaken says that the group has not come because nobody wanted it any more.
func (m *Landed) Forsaken() bool { return errors.Is(m.Err, errForsaken) }

// prefetcher decides which groups travel next. Groups that are brought once go in program order and one model after
// the other, unless the model was closed meanwhile. For groups that share slots the device says which one it wants in
// which slot: those that a step waits for go first, then those that a step will come to. The prefetcher's incarnations
// share its state: what the device was told is there must not be fetched again.
type prefetcher struct {
	system      *run.System
	out         prefetcherEdges
	incarnation int // of the device that the weights are for
	all         []*Cargo
	next        int  // index of the first home of all[0] that was not asked for
	lost        bool // the device was lost, and has heard of it
	queued      [urgencies][]item
	pending     map[item]urgency // items that the uploader was asked for and that have not arrived
}

type prefetcherEdges struct {
	fetch  run.Counted[fetch]
	loaded run.Edge[Loaded] // these are declared by each model
	landed run.Edge[Landed]
}

const (
	fetchAhead = 2  // groups that the uploader works on at once, of those that no step waits for
	fetches    = 16 // likewise, of all
)

func (p *prefetcher) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started, *restarted:
		for x, u := range p.pending { // asking twice does no harm
			p.out.fetch.Send(&fetch{x, u})
		}
	case *Bring:
		p.all = append(p.all, m.All)
	case *Want:
		p.want(m)
	case *arrived:
		if _, ok := p.pending[m.item]; ok {
			p.arrived(m)
		}
	default:
		p.system.Lifecycle(c)
		return
	}
	p.fetch()
}

// want queues a group, or moves it forward in the queue.
func (p *prefetcher) want(m *Want) {
	if _, ok := p.pending[m.item]; ok {
		return
	}
	if m.urgency == forsaken {
		p.forsake(m.item)
		return
	}
	for u := range p.queued {
		i := slices.Index(p.queued[u], m.item)
		switch {
		case i < 0:
		case urgency(u) <= m.urgency:
			return
		default:
			p.queued[u] = slices.Delete(p.queued[u], i, i+1)
		}
	}
	p.queued[m.urgency] = append(p.queued[m.urgency], m.item)
}

// forsake ends the way of a guess that has not begun.
func (p *prefetcher) forsake(x item) {
	if i := slices.Index(p.queued[guessed], x); i >= 0 {
		p.queued[guessed] = slices.Delete(p.queued[guessed], i, i+1)
		p.out.landed.Send(&Landed{item: x, Err: errForsaken})
	}
}

func (p *prefetcher) arrived(m *arrived) {
	delete(p.pending, m.item)
	p.out.fetch.Give()
	switch home := m.home().Brought(); {
	case !m.of.memory.open():
	case !home:
		p.out.landed.Send(&Landed{m.item, m.err, m.way})
	case p.lost || m.of.failed:
	case m.err != nil:
		p.lost, m.of.failed = errors.Is(m.err, backend.ErrLost), true
		p.out.loaded.Send(&Loaded{m.of, p.incarnation, m.err})
	case p.isLoaded(m.of):
		p.out.loaded.Send(&Loaded{Of: m.of, Incarnation: p.incarnation})
	}
}

// isLoaded says whether all groups of a model are there that are brought once.
func (p *prefetcher) isLoaded(c *Cargo) bool {
	p.skip()
	for x := range p.pending {
		if x.of == c && x.home().Brought() {
			return false
		}
	}
	return !slices.Contains(p.all, c)
}

// fetch asks for what is due, as far as there is credit.
func (p *prefetcher) fetch() {
	for {
		x, u, ok := p.choose()
		if !ok || !p.out.fetch.Take() {
			return
		}
		p.take(x, u)
		p.pending[x] = u
		p.out.fetch.Send(&fetch{x, u})
	}
}

// choose returns the item to ask for next. What a step waits for needs nothing but credit. Of what steps will come to,
// fetchAhead groups travel at a time: with more, the drive would give the first one later.
func (p *prefetcher) choose() (x item, u urgency, ok bool) {
	p.skip()
	switch {
	case len(p.queued[demanded]) > 0:
		return p.queued[demanded][0], demanded, true
	case p.travelling(ahead) >= fetchAhead:
	case len(p.queued[ahead]) > 0:
		return p.queued[ahead][0], ahead, true
	case len(p.all) > 0:
		of := p.all[0]
		return item{of, p.next, of.berth(p.next), 1}, ahead, true
	case len(p.queued[guessed]) > 0 && len(p.pending) == 0: // the drive has nothing else to do
		return p.queued[guessed][0], guessed, true
	case len(p.queued[filling]) > 0 && len(p.pending) < fetchAhead && len(p.pending) == p.travelling(filling):
		return p.queued[filling][0], filling, true
	}
	return item{}, 0, false
}

// travelling is how many groups of an urgency were asked for and have not arrived.
func (p *prefetcher) travelling(u urgency) (n int) {
	for _, v := range p.pending {
		if v == u {
			n++
		}
	}
	return n
}

// take takes what was chosen from where it was queued.
func (p *prefetcher) take(x item, u urgency) {
	if len(p.queued[u]) > 0 && p.queued[u][0] == x {
		p.queued[u] = slices.Delete(p.queued[u], 0, 1)
		return
	}
	p.next++
}

// skip drops models that were closed from the heads of the queues, and moves next past groups that are not brought
// once, and all past models that were closed or that have no group left to be asked for.
func (p *prefetcher) skip() {
	for u := range p.queued {
		for len(p.queued[u]) > 0 && !p.queued[u][0].of.memory.open() {
			p.queued[u] = slices.Delete(p.queued[u], 0, 1)
		}
	}
	for len(p.all) > 0 {
		homes := p.all[0].Plan.Homes
		for p.next < len(homes) && !homes[p.next].Brought() {
			p.next++
		}
		if p.next < len(homes) && p.all[0].memory.open() {
			return
		}
		p.all, p.next = p.all[1:], 0
	}
}
