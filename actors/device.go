package actors

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
)

// Messages that the device accepts, beside *enter and *leave (house), *run.Flush and *step (schedulers), *tiers.Loaded
// and *tiers.Landed (prefetcher), *tiers.Returned, *computed, *told and *aside (its own threads), and *overdue (its
// timer).
type (
	// pass, from a scheduler, says that no further step of this guest comes for now.
	pass struct{ guest int }
	// look, from a scheduler, says that a sequence was cancelled. The step that waits here for weights may have been
	// for that sequence alone.
	look struct{}
)

func (*pass) Late() {}
func (*look) Late() {}

// device is the actor that owns the compiled models, which enter and leave while it runs. It runs their steps, segment
// by segment, one step at a time. Its children bring the weights. A restart compiles and loads everything again, since
// what failed may have left anything in memory; the KV caches are lost with it.
// Wide: it is all that one actor knows.
type device struct {
	out         deviceEdges
	tiers       *tiers.Wiring
	graph       *run.Graph
	system      *run.System
	turns       *run.Turns
	log         zerolog.Logger
	backend     backend.Device
	slabs       *tiers.Slabs
	kept        *deviceMemory
	incarnation int
	order       *batch.Turns
	spent       accounts
	at          cursor
	watchdog    watchdog
	flying      int // steps of all models that are in flight
	flight      int // most steps in flight
}

type deviceEdges struct {
	late    lateEdges
	overdue run.Edge[overdue] // to itself
	broken  run.Edge[run.Failed]
}

func (d *device) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		d.start(c)
	case *actor.Stopped:
		d.watchdog.end()
		d.closeModels()
		for g := range d.kept.all() {
			g.tell.fail(ErrClosed)
			g.tell.gone()
		}
	case *enter:
		d.enter(m.guest)
	case *leave:
		d.leave(m.guest)
	case *aside:
		d.worked(m)
	case *tiers.Loaded:
		d.brought(m)
	case *run.Flush:
		d.flush(m)
	case *step:
		if g := d.guest(m); g != nil && m.gen == g.gen {
			m.behind = d.flying > 0
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
	for g := range d.kept.all() {
		d.order.Enter(g.index)
	}
	d.closeModels()
	d.spent.open()
	for g := range d.kept.all() {
		g.gen, g.owed, g.queue, g.flying = 0, nil, nil, nil
		if g.leaving || g.refused {
			continue
		}
		var model backend.Model
		var err error
		d.turns.Leave(func() { model, err = d.compile(g) })
		switch {
		case errors.Is(err, backend.ErrLost):
			panic(err) // a card may take some seconds to come back
		case err != nil:
			d.refuse(g, err)
		default:
			d.install(g, model)
		}
	}
	if err := d.spawnLoaders(c); err != nil {
		d.out.broken.Send(&run.Failed{Err: err})
		return
	}
	d.tellRestarted()
}

// tellRestarted tells all schedulers that what an older incarnation held is lost. Models that leave may have waited
// for that incarnation's end: they are closed now.
func (d *device) tellRestarted() {
	if d.incarnation > 0 {
		during := d.kept.working.Swap(nil)
		for g := range d.kept.all() {
			lost := &restarted{}
			if during != nil && during.guest == g.index {
				lost.During = during
			}
			if !g.leaving {
				g.out.restarted.Send(lost)
			}
			d.depart(g)
		}
	}
}

// enter compiles a model beside the steps of others.
func (d *device) enter(g *guest) {
	d.kept.put(g)
	d.order.Enter(g.index)
	work := &aside{}
	g.beside(work, func() (err error) {
		work.model, err = d.compile(g)
		return err
	})
}

func (d *device) compile(g *guest) (backend.Model, error) {
	return d.backend.Compile(g.spec.bound, g.layout(d.slabs.Memory()))
}

// worked takes in that compiling or closing a guest's model has ended.
func (d *device) worked(m *aside) {
	g := m.guest
	if g.work != m {
		return // of an older incarnation: this one has waited for it (settle)
	}
	g.work = nil
	switch {
	case m.closing:
		if m.err != nil {
			d.log.Error().Err(m.err).Msg("closing the model")
		}
		d.gone(g)
	case errors.Is(m.err, backend.ErrLost):
		d.lost(m.err, nil)
	case m.err != nil:
		d.refuse(g, m.err)
	default:
		d.install(g, m.model)
		if g.cargo != nil {
			g.out.ways.Renew.Send(&tiers.Renew{}) // its slabs may be larger
			g.out.ways.Bring.Send(&tiers.Bring{All: g.cargo})
		}
	}
	d.depart(g)
}

// install takes in a model that was compiled.
func (d *device) install(g *guest, m backend.Model) {
	g.model = m
	g.caches.open(m)
	g.tell.measured(m.Memory())
	g.furnish()
	if g.cargo == nil {
		d.loaded(g)
	}
}

// refuse fails a model's requests, and computes no step of it from now on. Other models go on.
func (d *device) refuse(g *guest, err error) {
	g.refused = true
	g.tell.fail(err)
	d.take(g)
}

// take drops a guest's steps that are queued, and fails the one that waits for weights.
func (d *device) take(g *guest) {
	g.gen, g.owed, g.queue = 0, nil, nil
	if d.at.step != nil && d.at.guest == g {
		d.at.failed = errStale
		d.resume()
	}
	d.order.Idle(g.index)
}

// leave begins to take a model out.
func (d *device) leave(g *guest) {
	g.leaving = true
	d.spent.leave()
	d.take(g)
	d.depart(g)
}

// depart closes a model that leaves, once nothing of it is computed.
func (d *device) depart(g *guest) {
	switch {
	case !g.leaving || g.work != nil || len(g.flying) > 0:
	case g.model == nil:
		d.gone(g)
	default:
		g.beside(&aside{closing: true}, g.leave())
	}
}

// gone forgets a guest of which nothing is left.
func (d *device) gone(g *guest) {
	d.kept.guests[g.index] = nil
	d.order.Idle(g.index)
	g.out.ways.Renew.Send(&tiers.Renew{})
	g.tell.gone()
}

// settle waits until the compiling or closing of a guest's model that an older incarnation began has ended, and takes
// its result.
func (d *device) settle(g *guest) {
	work := g.work
	if work == nil {
		return
	}
	d.turns.Leave(func() { <-work.over })
	g.work = nil
	switch {
	case work.closing:
		d.gone(g)
	case work.model != nil:
		g.model = work.model
	}
}

// spawnLoaders starts the actors that bring the weights.
func (d *device) spawnLoaders(c actor.Context) error {
	var all []*tiers.Cargo
	for g := range d.kept.all() {
		if g.cargo != nil {
			all = append(all, g.cargo)
		}
	}
	return d.graph.Spawn(c, d.tiers.Loaders(d.system, d.log, d.slabs, &d.kept.generations, d.incarnation, all)...)
}

// brought takes in that all weights of a model that are brought once are there, or will not be.
func (d *device) brought(m *tiers.Loaded) {
	switch g := d.carrying(m.Of); {
	case g == nil || m.Incarnation != d.incarnation:
	case errors.Is(m.Err, backend.ErrLost):
		d.lost(m.Err, nil)
	case m.Err != nil:
		d.refuse(g, m.Err)
	default:
		d.loaded(g)
	}
}

// loaded makes a model ready for steps, and says so.
func (d *device) loaded(g *guest) {
	g.loaded()
	g.tell.ready()
	g.answer(d.out.late)
}

// guest is the guest whose step it is.
func (d *device) guest(m *step) *guest { return d.kept.guests[m.guest] }

// carrying is the guest whose weights the cargo is; nil: its model was closed.
func (d *device) carrying(c *tiers.Cargo) *guest {
	for g := range d.kept.all() {
		if g.cargo == c {
			return g
		}
	}
	return nil
}

func (d *device) closeModels() {
	d.at.drop()
	for g := range d.kept.all() {
		d.settle(g)
		if err := g.leave()(); err != nil {
			d.log.Error().Err(err).Msg("closing the model")
		}
	}
}

// flush begins a generation of one model: its queued steps are dropped, and Flushed is answered once none of its steps
// runs any more.
func (d *device) flush(m *run.Flush) {
	for g := range d.kept.all() {
		if g.out.scheduler.Address.Id != m.Of.Id || g.leaving {
			continue
		}
		d.take(g) // queued steps are dropped, whatever still runs
		g.gen, g.owed = m.Gen, m
		g.answer(d.out.late)
	}
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

// landed takes in that a group has come, or failed to.
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

// returned takes in that the device has read the groups of a loan.
func (d *device) returned(m *tiers.Returned) {
	for g := range d.kept.all() {
		if g.weights == m.Of {
			m.Of.Settle(m.Loan)
		}
	}
	d.resume()
}

// next begins steps while there is room in flight, in the order of the models' turns. While a step waits for weights
// none begins: what it needs is on its way already, and the device would do no more if steps overtook each other.
func (d *device) next() {
	for d.at.step == nil && d.flying < d.flight {
		i, ok := d.order.Next()
		if !ok {
			if d.flying == 0 {
				d.spent.rest(d.kept)
			}
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

// compute has the device work on a step. A device that computes within the program has finished it on return, unless
// the step has to wait for weights.
func (d *device) compute(g *guest, m *step) {
	d.flying++
	g.flying = append(g.flying, m)
	m.over = false
	clear(m.times.segments[:])
	clear(m.times.gaps[:])
	m.ran = m.ran[:0]
	m.times.waited = 0
	m.times.started = trace.Instant()
	d.spent.begin(m)
	d.at.begin(g, m)
	d.resume()
}

// over takes in that a step has ended, here or by a message. Which of two steps is heard of first is chance, so steps
// of a guest are handed on in the order in which they began. A step of a model that was closed meanwhile is not in
// flying.
func (d *device) over(m *step) {
	m.over = true
	d.kept.working.CompareAndSwap(m, nil)
	g := d.guest(m)
	if g == nil { // the model left while the device restarted, and its last steps ended
		return
	}
	for len(g.flying) > 0 && g.flying[0].over {
		first := g.flying[0]
		g.flying = append(g.flying[:0], g.flying[1:]...)
		d.computed(first)
	}
	d.depart(g)
}

// computed hands a step to the sampler, which passes a failed or abandoned one on: steps return to the scheduler in
// the order in which it sent them. Steps of an older generation are dropped.
func (d *device) computed(m *step) {
	if errors.Is(m.err, backend.ErrLost) {
		d.lost(m.err, m)
		return
	}
	g := d.guest(m)
	d.flying--
	d.spent.end(g, m, d.flying == 0)
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
	g.answer(d.out.late)
}

// lost panics, so that the device is opened again by a restart: nothing that runs on it will end well. If the device
// hung, the step that it was at is blamed; else none is.
func (d *device) lost(err error, during *step) {
	if given := d.kept.lose(now(), err, during); given != nil {
		d.out.broken.Send(&run.Failed{Err: given})
		return
	}
	panic(err)
}
