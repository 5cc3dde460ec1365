package tiers

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Wiring is where those stand who bring weights, and what each may send. An actor is built with its own edges and has
// no others, but for those that come with a request to be answered.
type Wiring struct {
	Pool, Reader, Prefetcher, Uploader, Packer run.Place

	Want     run.Edge[Want]     // the device's
	Returned run.Edge[Returned] // its threads'
	Debt     Debt               // the drive's, for the device

	prefetcher prefetcherEdges
	uploader   uploaderEdges
	packer     packerEdges
	reader     readerEdges
	pool       poolEdges
}

// Wire declares the edges between those who bring weights to the device, which is the house's. Its groups share so many
// slots.
func Wire(s *run.System, g *run.Graph, house, device run.Place, slots int) *Wiring {
	at := func(kind string, under run.Place) run.Place {
		return run.Place{Kind: kind, Address: s.Address(path(under) + "/" + kind)}
	}
	w := &Wiring{
		Pool: at("pool", house), Reader: at("reader", house),
		Prefetcher: at("prefetcher", device), Uploader: at("uploader", device), Packer: at("packer", device),
	}
	w.wireLoading(g, device)
	w.wireStreaming(g, device, max(slots, 1))
	w.wireFaults(g, house)
	return w
}

func path(p run.Place) string {
	if p.Address == nil {
		return p.Kind
	}
	return p.Address.Id
}

// wireLoading declares what brings the weights.
func (w *Wiring) wireLoading(g *run.Graph, device run.Place) {
	f := &w.prefetcher
	f.fetch = run.Count[fetch](g, w.Prefetcher, w.Uploader, fetches, "the next group waits").Twice()
	f.loaded = run.Connect[Loaded](g, w.Prefetcher, device, run.Most(run.ControlCredits), "once a load and model")
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

// wireStreaming declares what moves groups that share slots.
func (w *Wiring) wireStreaming(g *run.Graph, device run.Place, slots int) {
	w.Want = run.Connect[Want](g, device, w.Prefetcher, run.Most(5*slots),
		"one a slot, one more if it is forsaken, one if it is urgent, and those of the item before may be on their way")
	w.prefetcher.landed = run.Connect[Landed](g, w.Prefetcher, device, run.Most(2*slots),
		"one a slot, and one more if it was forsaken before")
	w.Returned = run.Connect[Returned](g, device, device, run.Most(slots), "one a slot")
}

// wireFaults declares who hears of whose end: a neighbour's, or the house's.
func (w *Wiring) wireFaults(g *run.Graph, house run.Place) {
	tell := func(from, to run.Place) run.Edge[restarted] { return run.Tell[struct{}](g, from, to) }
	u := &w.uploader
	u.partners = run.Partner(g, w.Uploader, run.ControlCredits, w.Reader, w.Pool, w.Packer)
	w.reader.restarted = []run.Edge[restarted]{tell(w.Reader, w.Uploader)}
	w.pool.restarted = []run.Edge[restarted]{tell(w.Pool, w.Uploader)}
	w.packer.restarted, u.restarted = tell(w.Packer, w.Uploader), tell(w.Uploader, w.Prefetcher)
	w.prefetcher.broken = run.Fail(g, w.Prefetcher, house)
}

// Shared are the house's children that serve every device: pool and reader, which knows from sums what it read before.
func (w *Wiring) Shared(s *run.System, log zerolog.Logger, slabs *pin.Arena, open OpenDisk,
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

// Loaders are the device's children that bring it all of these, in this incarnation of its. Generations are counted
// through all of them.
func (w *Wiring) Loaders(s *run.System, log zerolog.Logger, slabs *pin.Arena, generations *atomic.Uint64,
	incarnation int, all []*Cargo) []run.Child {
	fetcher := &prefetcher{system: s, out: w.prefetcher, incarnation: incarnation, all: all, pending: map[item]urgency{}}
	fetcher.out.fetch.Reset()
	return []run.Child{
		{At: w.Packer, Produce: func(n int) actor.Actor { return &packer{system: s, out: w.packer, incarnation: n} }},
		{At: w.Uploader, Produce: func(n int) actor.Actor {
			return &uploader{system: s, log: log, out: w.uploader, name: w.Uploader.Address.Id, slabs: slabs,
				generations: generations, all: all, reloads: incarnation > 0, incarnation: n, debt: &w.Debt,
				moving: map[*piece]bool{}, coming: map[item]*arrival{}}
		}},
		{At: w.Prefetcher, Produce: func(int) actor.Actor { return fetcher }},
	}
}
