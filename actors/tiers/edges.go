package tiers

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Wiring is where in the tree the actors that bring weights are, and the edges on which each may send. An actor is
// built with its own edges and has no others, but for those that come with a request to be answered.
type Wiring struct {
	Pool, Reader, Prefetcher, Uploader, Packer run.Place

	Debt Debt // of the drive; the device reads it

	prefetcher prefetcherEdges
	uploader   uploaderEdges
	packer     packerEdges
	reader     readerEdges
	pool       poolEdges
}

// Ways are the edges of one model: those on which its device asks for weights, and the one back to it.
type Ways struct {
	Bring    run.Edge[Bring]    // sent by the device
	Want     run.Edge[Want]     // likewise
	Renew    run.Edge[Renew]    // likewise
	Returned run.Edge[Returned] // sent by the device's own threads, to its actor
}

// Wire declares the edges among the actors that bring weights to a device of the house, but for those that each model
// adds; see Wiring.Wire.
func Wire(s *run.System, g *run.Graph, house, device run.Place) *Wiring {
	at := func(kind string, under run.Place) run.Place {
		return run.Place{Kind: kind, Address: s.Address(path(under) + "/" + kind)}
	}
	w := &Wiring{
		Pool: at("pool", house), Reader: at("reader", house),
		Prefetcher: at("prefetcher", device), Uploader: at("uploader", device), Packer: at("packer", device),
	}
	w.wireLoading(g)
	w.wireFaults(g)
	w.prefetcher.hear(run.NewGraph(s), w.Prefetcher, device, 1) // to send on; models declare its credits
	return w
}

// hear declares the edges on which the device hears of one model's weights. slots is how many slots the model's groups
// share.
func (f *prefetcherEdges) hear(g *run.Graph, prefetcher, device run.Place, slots int) {
	f.loaded = run.Connect[Loaded](g, prefetcher, device, run.Most(run.ControlCredits), "once a load")
	f.landed = run.Connect[Landed](g, prefetcher, device, run.Most(2*slots),
		"one a slot, and one more if it was forsaken before")
}

// Wire declares the edges that a model adds, in the model's graph. slots is how many slots its groups share.
func (w *Wiring) Wire(g *run.Graph, device run.Place, slots int) *Ways {
	slots = max(slots, 1)
	new(prefetcherEdges).hear(g, w.Prefetcher, device, slots)
	return &Ways{
		Bring: run.Connect[Bring](g, device, w.Prefetcher, run.Most(1), "once, when the model enters"),
		Want: run.Connect[Want](g, device, w.Prefetcher, run.Most(5*slots),
			"one a slot, one more if it is forsaken, one if it is urgent, and those of the item before may be on their way"),
		Renew:    run.Connect[Renew](g, device, w.Reader, run.Most(2), "when the model enters, and when it has left"),
		Returned: run.Connect[Returned](g, device, device, run.Most(slots), "one a slot"),
	}
}

func path(p run.Place) string {
	if p.Address == nil {
		return p.Kind
	}
	return p.Address.Id
}

// wireLoading declares the edges on which weights are asked for, read and copied.
func (w *Wiring) wireLoading(g *run.Graph) {
	f := &w.prefetcher
	f.fetch = run.Count[fetch](g, w.Prefetcher, w.Uploader, fetches, "the next group waits").Twice()
	u := &w.uploader
	u.arrived = run.Connect[arrived](g, w.Uploader, w.Prefetcher, run.Each(f.fetch.Edge), "one a fetch")
	u.lease = run.Count[lease](g, w.Uploader, w.Pool, place.Slabs, "the piece waits for a slab")
	u.granted = run.Connect[granted](g, w.Pool, w.Uploader, run.Each(u.lease.Edge), "an answer to each")
	u.release = run.Connect[release](g, w.Uploader, w.Pool, run.Each(u.lease.Edge), "one a slab")
	u.settled = run.Connect[settled](g, w.Uploader, w.Pool, run.Most(run.ControlCredits), run.Bounded)
	u.read = run.Connect[read](g, w.Uploader, w.Reader, run.Each(u.lease.Edge), "one a slab")
	u.straight = run.Count[read](g, w.Uploader, w.Reader, straight, "the piece waits")
	u.data = run.Connect[read](g, w.Reader, w.Uploader, run.Most(readsAtOnce), "an answer to each")
	u.again = run.Connect[again](g, w.Uploader, w.Uploader, run.Most(readsAtOnce).Again(), "one a read that failed")
	u.pack = run.Connect[pack](g, w.Uploader, w.Packer, run.Each(u.lease.Edge), "one a slab")
	w.packer.packed = run.Connect[pack](g, w.Packer, w.Uploader, run.Each(u.pack), "an answer to each")
}

// wireFaults declares the edges on which actors tell each other of restarts.
func (w *Wiring) wireFaults(g *run.Graph) {
	tell := func(from, to run.Place) run.Edge[restarted] { return run.Tell[struct{}](g, from, to) }
	u := &w.uploader
	u.partners = run.Partner(g, w.Uploader, w.Reader, w.Pool, w.Packer)
	w.reader.restarted = []run.Edge[restarted]{tell(w.Reader, w.Uploader)}
	w.pool.restarted = []run.Edge[restarted]{tell(w.Pool, w.Uploader)}
	w.packer.restarted, u.restarted = tell(w.Packer, w.Uploader), tell(w.Uploader, w.Prefetcher)
}

// Shared returns the house's children that serve every device: the pool, and the reader, which compares what it reads
// with the sums of what was read before.
func (w *Wiring) Shared(s *run.System, log zerolog.Logger, slabs *Slabs, open OpenDisk,
	sums *uring.Sums) []run.Child {
	disk := s.Spans().Track(w.Reader.Address.Id + "/disk")
	return []run.Child{
		{At: w.Pool, Produce: func(n int) actor.Actor { return newPool(s, w.pool, n) }},
		{At: w.Reader, Produce: func(n int) actor.Actor {
			return &reader{system: s, log: log, slabs: slabs, open: open, sums: sums, out: w.reader, incarnation: n, disk: disk,
				gens: map[string]uint64{}}
		}},
	}
}

// Loaders returns the device's children that bring it the weights of all these models, for one incarnation of the
// device. Generations are counted on through all incarnations.
func (w *Wiring) Loaders(s *run.System, log zerolog.Logger, slabs *Slabs, generations *atomic.Uint64,
	incarnation int, all []*Cargo) []run.Child {
	fetcher := &prefetcher{system: s, out: w.prefetcher, incarnation: incarnation, all: all, pending: map[item]urgency{}}
	fetcher.out.fetch.Reset()
	return []run.Child{
		{At: w.Packer, Produce: func(n int) actor.Actor { return &packer{system: s, out: w.packer, incarnation: n} }},
		{At: w.Uploader, Produce: func(n int) actor.Actor {
			return &uploader{system: s, log: log, out: w.uploader, name: w.Uploader.Address.Id, slabs: slabs,
				generations: generations, reloads: incarnation > 0, incarnation: n, debt: &w.Debt,
				moving: map[*piece]bool{}, coming: map[item]*arrival{}}
		}},
		{At: w.Prefetcher, Produce: func(int) actor.Actor { return fetcher }},
	}
}
