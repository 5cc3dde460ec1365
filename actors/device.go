package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/storage/pin"
)

// All that the device accepts: run.Flush and *step (schedulers), *tiers.Loaded and *tiers.Landed (prefetcher),
// *tiers.Returned (its own threads), and
type (
	// loaded, from itself where nothing has to be loaded: all weights of a model are there. The house hears it of each.
	loaded struct {
		guest       *guest
		incarnation int
	}
	// computed, from the device's own threads: a step that it worked on beside the actors has ended.
	computed struct{ step *step }
	// pass, from a scheduler whose model shares the device: there is no further step for now.
	pass struct{ guest *guest }
	// told, from the device's own threads: they know which experts the rows of a step go to.
	told struct{ step *step }
	// look, from a scheduler: a sequence was cancelled. The step that waits here may have been for it alone.
	look struct{}
)

func (*loaded) Late()   {}
func (*computed) Late() {}
func (*pass) Late()     {}
func (*told) Late()     {}
func (*look) Late()     {}

// stepRing, to a scheduler before flushed: the steps of its model, as many as may be in flight.
type stepRing struct {
	gen    uint64
	steps  []*step
	shared *guest // whose turns it takes with other models'; nil: it is alone
}

func (*stepRing) Late() {}

// overdue, from itself after a time in which what a step waits for may have come.
type overdue struct{}

func (*overdue) Late() {}

// device owns the compiled models: it runs their steps, segment by segment, one model's after the other's. Its children
// bring the weights. A restart compiles and loads afresh, since what failed may have left anything in memory; the KV
// caches are lost with it.
type device struct {
	house       *houseWiring
	system      *run.System
	turns       *run.Turns
	log         zerolog.Logger
	backend     backend.Device
	slabs       *pin.Arena
	kept        *deviceMemory
	incarnation int
	order       *batch.Turns
	idle        *trace.Wait
	at          cursor
	late        time.Duration // how long a step waits for a drive
	watch       *time.Timer   // nil: nobody looks whether it does
	flying      int           // steps of all models
	flight      int           // most of them
}

// deviceMemory is what outlives a device's incarnations.
type deviceMemory struct {
	guests      []*guest
	generations atomic.Uint64        // of the uploader
	working     atomic.Pointer[step] // what the device died of, if it died of a step
}

func makeDevice(h *House, kept *deviceMemory, incarnation int) *device {
	return &device{
		house: h.wiring, system: h.system, turns: h.turns, log: h.log, backend: h.device, slabs: h.slabs,
		kept: kept, incarnation: incarnation, order: batch.NewTurns(len(kept.guests)), flight: h.device.Traits().Flight,
		idle: h.idle, late: h.late,
	}
}

func (d *device) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		d.start(c)
	case *actor.Stopped:
		if d.watch != nil {
			d.watch.Stop()
		}
		d.closeModels()
	case *loaded:
		d.loaded(m)
	case *tiers.Loaded:
		if g := d.carrying(m.Of); g != nil {
			d.loaded(&loaded{g, m.Incarnation})
		}
	case *run.Flush:
		d.flush(m)
	case *step:
		if g := m.guest; m.gen == g.gen {
			g.queue = append(g.queue, m)
			d.order.Wait(g.index)
		}
	case *pass:
		d.order.Idle(m.guest.index)
	case *computed:
		d.over(m.step)
	case *tiers.Landed:
		d.landed(m)
	case *tiers.Returned:
		d.returned(m)
	case *told:
		if m.step == d.at.step {
			d.at.told = true
			d.advance()
		}
	case *look:
		d.resume()
	case *overdue:
		d.overdue()
	default:
		d.system.Lifecycle(c)
		return
	}
	d.next()
}

func (d *device) start(c actor.Context) {
	d.closeModels()
	d.idle.Begin(now(), d.absent(), trace.Nothing())
	for _, g := range d.kept.guests {
		var err error
		d.turns.Leave(func() { g.model, err = d.backend.Compile(g.spec.bound, g.spec.layout) })
		if err != nil {
			d.house.broken.Send(&run.Failed{Err: err})
			return
		}
		g.furnish(d)
	}
	if err := d.spawnLoaders(c); err != nil {
		d.house.broken.Send(&run.Failed{Err: err})
		return
	}
	if d.incarnation > 0 {
		during := d.kept.working.Swap(nil)
		for _, g := range d.kept.guests {
			lost := &restarted{}
			if during != nil && during.guest == g {
				lost.During = during
			}
			g.out.restarted.Send(lost)
		}
	}
}

// spawnLoaders starts the actors that bring the weights, if they are not in place.
func (d *device) spawnLoaders(c actor.Context) error {
	var all []*tiers.Cargo
	for _, g := range d.kept.guests {
		if g.spec.layout.InPlace != nil {
			d.house.inPlace.Send(&loaded{g, d.incarnation})
			continue
		}
		all = append(all, g.cargo)
	}
	if len(all) == 0 {
		return nil
	}
	w := d.house
	return w.graph.Spawn(c, w.tiers.Loaders(d.system, d.log, d.slabs, &d.kept.generations, d.incarnation, all)...)
}

// loaded hears that all weights of a model are there that do not come with each step.
func (d *device) loaded(m *loaded) {
	if m.incarnation == d.incarnation {
		m.guest.loaded()
		d.house.loaded.Send(m)
		m.guest.answer(d)
	}
}

// carrying is whose weights are brought; nil if they are those of a model that was closed.
func (d *device) carrying(c *tiers.Cargo) *guest {
	for _, g := range d.kept.guests {
		if g.cargo == c {
			return g
		}
	}
	return nil
}

func (d *device) closeModels() {
	if m := d.at.step; m != nil {
		d.at.step = nil
		m.guest.model.Finish(m.compute, m.ended)
	}
	for _, g := range d.kept.guests {
		if err := g.leave(); err != nil {
			d.log.Error().Err(err).Msg("closing the model")
		}
	}
}

// flush begins a generation of one model: what it had here is forgotten, once nothing of it runs any more.
func (d *device) flush(m *run.Flush) {
	i := slices.IndexFunc(d.kept.guests, func(g *guest) bool { return g.out.scheduler.Address.Id == m.Of.Id })
	g := d.kept.guests[i]
	g.gen, g.owed, g.queue = m.Gen, m, nil
	if at := d.at.step; at != nil && at.guest == g {
		d.at.failed = errStale
		d.advance()
	}
	if len(g.flying) == 0 {
		d.order.Idle(g.index)
	}
	g.answer(d)
}

// next begins the steps that there is room for, those of the model first whose turn it is. While one waits for weights
// none begins: what it needs is on its way already, and the device would do no more if steps went past each other.
func (d *device) next() {
	for d.at.step == nil && d.flying < d.flight {
		i, ok := d.order.Next()
		if !ok {
			d.rest()
			return
		}
		g := d.kept.guests[i]
		m := g.queue[0]
		g.queue = append(g.queue[:0], g.queue[1:]...)
		d.compute(m)
		if len(g.queue) > 0 {
			d.order.Wait(i)
		}
	}
}

// compute has the device work on a step. One that computes on the processor is done with it here, unless it has to
// wait for weights.
func (d *device) compute(m *step) {
	d.flying++
	m.guest.flying = append(m.guest.flying, m)
	m.over = false
	clear(m.times.segments[:])
	m.times.waited = 0
	m.times.started = now()
	d.began(m)
	d.at.begin(m)
	d.advance()
}

// over hears that a step has ended, here or by a message: which of two comes first is chance, so they go on in order.
// One of a model that was closed meanwhile is not among those that fly.
func (d *device) over(m *step) {
	m.over = true
	d.kept.working.CompareAndSwap(m, nil)
	for g := m.guest; len(g.flying) > 0 && g.flying[0].over; {
		first := g.flying[0]
		g.flying = append(g.flying[:0], g.flying[1:]...)
		d.computed(first)
	}
}

// computed hands a step to the sampler; a failed or abandoned one goes straight back. What belongs to an older
// generation goes nowhere.
func (d *device) computed(m *step) {
	g := m.guest
	d.flying--
	d.ended(m)
	d.order.Took(g.index, m.times.computed.Sub(m.times.started))
	m.contended = d.order.Contended(g.index)
	if len(g.queue) > 0 {
		d.order.Wait(g.index)
	}
	switch {
	case m.gen != g.gen:
		if len(g.flying) == 0 {
			d.order.Idle(g.index)
		}
		g.answer(d)
	case m.err != nil:
		g.out.failed.Send(m)
	default:
		g.out.step.Send(m)
	}
}
