package actors

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
)

// All that the device accepts: *enter and *leave (house), run.Flush and *step (schedulers), *tiers.Loaded and
// *tiers.Landed (prefetcher), *tiers.Returned, *computed, *told and *aside (its own threads), and
type (
	// pass, from a scheduler: there is no further step of this guest's for now.
	pass struct{ guest int }
	// look, from a scheduler: a sequence was cancelled. The step that waits here may have been for it alone.
	look struct{}
)

func (*pass) Late() {}
func (*look) Late() {}

// device owns the compiled models, which enter and leave while it runs: it runs their steps, segment by segment, one
// model's after the other's. Its children bring the weights. A restart compiles and loads afresh, since what failed may
// have left anything in memory; the KV caches are lost with it.
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
	flying      int // steps of all models
	flight      int // most of them
}

type deviceEdges struct {
	late    lateEdges
	overdue run.Edge[overdue] // from itself
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
	d.spent.open()
	for g := range d.kept.all() {
		d.order.Enter(g.index)
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

// tellRestarted has all models begin anew what was lost with an older incarnation. Those that leave may have waited for
// its end.
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

// enter compiles a model. Steps of others go on meanwhile.
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

// worked hears that work on a guest has ended.
func (d *device) worked(m *aside) {
	g := m.guest
	if g.work != m {
		return // this incarnation waited for its end when it started
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
	g.furnish(d.out.late)
	if g.cargo == nil {
		d.loaded(g)
	}
}

// refuse ends what a model is asked for, and computes no step of it from now on. Others do not notice.
func (d *device) refuse(g *guest, err error) {
	g.refused = true
	g.tell.fail(err)
	d.take(g)
}

// take takes a guest's steps out of what is to be computed.
func (d *device) take(g *guest) {
	g.gen, g.owed, g.queue = 0, nil, nil
	if d.at.step != nil && d.at.guest == g {
		d.at.failed = errStale
		d.resume()
	}
	d.order.Idle(g.index)
}

// leave begins the end of a model's stay.
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

// gone forgets a guest.
func (d *device) gone(g *guest) {
	d.kept.guests[g.index] = nil
	d.order.Idle(g.index)
	g.out.ways.Renew.Send(&tiers.Renew{})
	g.tell.gone()
}

// settle waits for the work that goes on beside steps of an older incarnation, and ends it.
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

// brought hears that all weights of a model are there that do not come with each step, or will not be.
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

// loaded has steps of a model computed.
func (d *device) loaded(g *guest) {
	g.loaded()
	g.tell.ready()
	g.answer()
}

// guest is whose step it is.
func (d *device) guest(m *step) *guest { return d.kept.guests[m.guest] }

// carrying is whose weights are brought; nil if they are those of a model that was closed.
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

// flush begins a generation of one model: what it had here is forgotten, once nothing of it runs any more.
func (d *device) flush(m *run.Flush) {
	for g := range d.kept.all() {
		if g.out.scheduler.Address.Id != m.Of.Id || g.leaving {
			continue
		}
		d.take(g) // what was queued is taken back, whatever still runs
		g.gen, g.owed = m.Gen, m
		g.answer()
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
	for g := range d.kept.all() {
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
	d.spent.begin(m)
	d.at.begin(g, m)
	d.resume()
}

// over hears that a step has ended, here or by a message: which of two comes first is chance, so they go on in order.
// One of a model that was closed meanwhile is not among those that fly.
func (d *device) over(m *step) {
	m.over = true
	d.kept.working.CompareAndSwap(m, nil)
	g := d.guest(m)
	if g == nil { // it left while the device started again, and its model's last steps ended
		return
	}
	for len(g.flying) > 0 && g.flying[0].over {
		first := g.flying[0]
		g.flying = append(g.flying[:0], g.flying[1:]...)
		d.computed(first)
	}
	d.depart(g)
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
	g.answer()
}

// lost has the device opened afresh: nothing that runs on it will end well. The step that it was at, if any, is to
// blame if the device hung, and no other.
func (d *device) lost(err error, during *step) {
	if given := d.kept.lose(now(), err, during); given != nil {
		d.out.broken.Send(&run.Failed{Err: given})
		return
	}
	panic(err)
}
