package actors

import (
	"errors"
	"fmt"
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
// *tiers.Returned, *computed and *told (its own threads), and
type (
	// loaded, from itself where nothing has to be loaded: all weights of a guest are there. The house hears it of each.
	loaded struct{ guest, incarnation int }
	// pass, from a scheduler whose model shares the device: there is no further step of this guest's for now.
	pass struct{ guest int }
	// look, from a scheduler: a sequence was cancelled. The step that waits here may have been for it alone.
	look struct{}
)

func (*loaded) Late() {}
func (*pass) Late()   {}
func (*look) Late()   {}

// device owns the compiled models: it runs their steps, segment by segment, one model's after the other's. Its children
// bring the weights. A restart compiles and loads afresh, since what failed may have left anything in memory; the KV
// caches are lost with it.
type device struct {
	out         deviceEdges
	tiers       *tiers.Wiring
	graph       *run.Graph
	system      *run.System
	turns       *run.Turns
	log         zerolog.Logger
	backend     backend.Device
	slabs       *pin.Arena
	kept        *deviceMemory
	incarnation int
	order       *batch.Turns
	idle        *trace.Wait
	timed       *timed // nil: the device does not say when segments ran
	at          cursor
	watchdog    watchdog
	flying      int // steps of all models
	flight      int // most of them
}

// deviceMemory is what outlives a device's incarnations.
type deviceMemory struct {
	guests      []*guest
	generations atomic.Uint64        // of the uploader
	working     atomic.Pointer[step] // what the device died of, if it died of a step
	lost        []time.Time          // when its backend was, in lostWindow
}

// A device that is lost more often than mostLost in lostWindow is given up: what is lost without an end is of no use,
// and each time may take as long as a hang does to be seen.
const (
	mostLost   = 5
	lostWindow = 10 * time.Minute
)

type deviceEdges struct {
	late    lateEdges
	overdue run.Edge[overdue] // from itself
	loaded  run.Edge[loaded]
	inPlace run.Edge[loaded]
	broken  run.Edge[run.Failed]
}

func (d *device) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		d.start(c)
	case *actor.Stopped:
		d.watchdog.end()
		d.closeModels()
	case *loaded:
		d.loaded(m)
	case *tiers.Loaded:
		switch g := d.carrying(m.Of); {
		case g == nil:
		case m.Lost != nil && m.Incarnation == d.incarnation:
			d.lost(m.Lost, nil)
		case m.Lost == nil:
			d.loaded(&loaded{g.index, m.Incarnation})
		}
	case *run.Flush:
		d.flush(m)
	case *step:
		if g := d.guest(m); m.gen == g.gen {
			g.queue = append(g.queue, m)
			d.order.Wait(g.index)
		}
	case *pass:
		d.order.Idle(m.guest)
	case *computed:
		d.over(m.step)
	case *tiers.Landed:
		d.landed(m)
	case *tiers.Returned:
		d.returned(m)
	case *told:
		if m.step == d.at.step {
			d.at.told = true
			d.resume()
		}
	case *look:
		d.resume()
	case *overdue:
		if err := d.watchdog.look(&d.at); err != nil {
			d.log.Error().Err(err).Msg("weights do not come")
			d.resume()
		}
	default:
		d.system.Lifecycle(c)
		return
	}
	d.next()
	d.watchdog.keep(&d.at)
}

func (d *device) start(c actor.Context) {
	d.closeModels()
	d.idle.Begin(now(), d.absent(), trace.Nothing())
	for _, g := range d.kept.guests {
		var err error
		layout := g.layout(d.slabs.Memory())
		d.turns.Leave(func() { g.model, err = d.backend.Compile(g.spec.bound, layout) })
		if errors.Is(err, backend.ErrLost) {
			panic(err) // a card may take some seconds to come back
		}
		if err != nil {
			d.out.broken.Send(&run.Failed{Err: err})
			return
		}
		g.furnish(d.tiers, d.out.late)
	}
	if err := d.spawnLoaders(c); err != nil {
		d.out.broken.Send(&run.Failed{Err: err})
		return
	}
	if d.incarnation > 0 {
		during := d.kept.working.Swap(nil)
		for _, g := range d.kept.guests {
			lost := &restarted{}
			if during != nil && during.guest == g.index {
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
		if g.spec.layout.InPlace() != nil {
			d.out.inPlace.Send(&loaded{g.index, d.incarnation})
			continue
		}
		all = append(all, g.cargo)
	}
	if len(all) == 0 {
		return nil
	}
	return d.graph.Spawn(c, d.tiers.Loaders(d.system, d.log, d.slabs, &d.kept.generations, d.incarnation, all)...)
}

// loaded hears that all weights of a model are there that do not come with each step.
func (d *device) loaded(m *loaded) {
	if m.incarnation == d.incarnation {
		g := d.kept.guests[m.guest]
		g.loaded()
		d.out.loaded.Send(m)
		d.answer(g)
	}
}

// guest is whose step it is.
func (d *device) guest(m *step) *guest { return d.kept.guests[m.guest] }

// answer tells a scheduler that its generation has begun, once it has.
func (d *device) answer(g *guest) { g.answer(len(d.kept.guests) == 1) }

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
	d.at.drop()
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
	if d.at.step != nil && d.at.guest == g {
		d.at.failed = errStale
		d.resume()
	}
	d.order.Idle(g.index) // what was queued is taken back, whatever still runs
	d.answer(g)
}

// resume goes on with the step that waits here, if one does.
func (d *device) resume() {
	if d.at.step == nil {
		return
	}
	if m := d.at.advance(); m != nil {
		d.over(m)
	}
}

// landed hears that the way of a group has ended.
func (d *device) landed(m *tiers.Landed) {
	g := d.carrying(m.Of())
	if g == nil || g.weights == nil {
		return // of a model that was closed
	}
	g.weights.Landed(m)
	if m.Err != nil && !m.Forsaken() {
		d.log.Error().Err(m.Err).Msg("weights cannot be read")
	}
	d.at.landed(g, m)
	d.resume()
}

// returned hears that the device has read what it had on loan.
func (d *device) returned(m *tiers.Returned) {
	for _, g := range d.kept.guests {
		if g.weights == m.Of {
			m.Of.Settle(m.Loan)
		}
	}
	d.resume()
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
		d.compute(g, m)
		if len(g.queue) > 0 {
			d.order.Wait(i)
		}
	}
}

// compute has the device work on a step. One that computes on the processor is done with it here, unless it has to
// wait for weights.
func (d *device) compute(g *guest, m *step) {
	d.flying++
	g.flying = append(g.flying, m)
	m.over = false
	clear(m.times.segments[:])
	clear(m.times.gaps[:])
	m.ran = m.ran[:0]
	m.times.waited = 0
	m.times.started = now()
	d.began(m)
	d.at.begin(g, m)
	d.resume()
}

// over hears that a step has ended, here or by a message: which of two comes first is chance, so they go on in order.
// One of a model that was closed meanwhile is not among those that fly.
func (d *device) over(m *step) {
	m.over = true
	d.kept.working.CompareAndSwap(m, nil)
	for g := d.guest(m); len(g.flying) > 0 && g.flying[0].over; {
		first := g.flying[0]
		g.flying = append(g.flying[:0], g.flying[1:]...)
		d.computed(first)
	}
}

// computed hands a step to the sampler, which passes a failed or abandoned one on: steps return to the scheduler in the
// order in which it sent them. What belongs to an older generation goes nowhere.
func (d *device) computed(m *step) {
	if errors.Is(m.err, backend.ErrLost) {
		d.lost(m.err, m)
		return
	}
	g := d.guest(m)
	d.flying--
	d.ended(g, m)
	d.order.Took(g.index, m.times.took+m.times.waited)
	m.contended = d.order.Contended(g.index)
	if len(g.queue) > 0 {
		d.order.Wait(g.index)
	}
	if m.gen == g.gen {
		g.out.step.Send(m)
		return
	}
	if len(g.flying) == 0 {
		d.order.Idle(g.index)
	}
	d.answer(g)
}

// lost has the device opened afresh: nothing that runs on it will end well. The step that it was at, if any, is to
// blame if the device hung, and no other.
func (d *device) lost(err error, during *step) {
	if !errors.Is(err, backend.ErrHung) {
		during = nil
	}
	d.kept.working.Store(during)
	at := now()
	d.kept.lost = slices.DeleteFunc(d.kept.lost, func(t time.Time) bool { return at.Sub(t) >= lostWindow })
	if d.kept.lost = append(d.kept.lost, at); len(d.kept.lost) <= mostLost {
		panic(err)
	}
	d.out.broken.Send(&run.Failed{Err: fmt.Errorf("given up, for the %dth time within %s: %w", len(d.kept.lost), lostWindow,
		err)})
}

// rest says why the device has nothing to compute, where it knows: its actor has handled what there was.
func (d *device) rest() {
	if d.flying > 0 {
		return
	}
	why := trace.Unknown
	for _, g := range d.kept.guests {
		switch {
		case len(g.queue) > 0:
			why = trace.OtherModel
		case !g.resident:
			why = d.absent()
		}
	}
	if cause, open := d.idle.Open(); open && cause == why {
		return
	}
	at := now()
	for _, g := range d.kept.guests {
		if len(g.queue) > 0 {
			d.explain(g.queue[0], at)
		}
	}
	d.idle.Begin(at, why, trace.Nothing())
}

// absent is why weights are not there.
func (d *device) absent() trace.Cause {
	if d.incarnation > 0 {
		return trace.Restarting
	}
	return trace.Loading
}

// explain says what the device waited for until it has a step, if it did not know.
func (d *device) explain(m *step, at time.Time) {
	if cause, open := d.idle.Open(); open && cause == trace.Unknown {
		m.delays.explain(d.idle, m.times.planned, at)
	}
}

// began ends the device's wait for a step.
func (d *device) began(m *step) {
	d.explain(m, m.times.started)
	if _, open := d.idle.Open(); open && d.timed != nil {
		d.timed.begin(m.times.started)
	}
	d.idle.End(m.times.started)
}

// ended writes a step's span, and begins to wait for another.
func (d *device) ended(g *guest, m *step) {
	kind := trace.Prefill
	if m.decodes() {
		kind = trace.Decode
	}
	from, to := m.times.started, m.times.computed
	m.times.took = to.Sub(from) - m.times.waited
	if d.timed != nil && len(m.ran) > 0 {
		from, to, m.times.took = d.timed.step(g, m)
	}
	g.stats.spans.Record(kind, trace.OfStep(m.number), soonest(m.times.planned, from), from, to)
	if d.flying == 0 {
		d.idle.Begin(to, trace.Unknown, trace.Nothing())
		d.idle.Until(m.times.computed, trace.Host)
	}
}
