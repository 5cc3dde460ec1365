package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// All that the house's root actor accepts: *loaded (device), *run.Failed (from whoever cannot do its part: the house
// cannot serve), and
type (
	// shutdown, from the facade: stop the tree in order, then close done.
	shutdown struct{ done chan struct{} }
)

func (*shutdown) Urgent() {}

// root supervises the tree. It starts the actors, and stops them in order: those who ask before those who answer.
type root struct {
	house    *House
	loaded   map[*guest]bool // whose weights are there
	stopping *shutdown
	left     []run.Place // to be stopped, first one first
}

func (r *root) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if err := r.start(c); err != nil {
			r.fail(err)
		}
	case *loaded:
		if r.loaded[m.guest] = true; len(r.loaded) == len(r.house.engines) {
			r.house.health.set(nil)
		}
	case *run.Failed:
		r.fail(m.Err)
	case *shutdown:
		r.stopping = m
		for _, e := range r.house.engines {
			r.left = append(r.left, e.wiring.model)
		}
		w := r.house.wiring
		r.left = append(r.left, w.device, w.tiers.Reader, w.tiers.Pool)
		r.stopNext(c)
	case *actor.Terminated:
		if r.stopping != nil && len(r.left) > 0 && m.Who.Id == r.left[0].Address.Id {
			r.left = r.left[1:]
			r.stopNext(c)
		}
	default:
		r.house.system.Lifecycle(c)
	}
}

func (r *root) start(c actor.Context) error {
	h, w := r.house, r.house.wiring
	guests := make([]*guest, len(h.engines))
	for i, e := range h.engines {
		guests[i] = &guest{index: i, spec: e.spec, out: e.wiring.guest, stats: &e.stats, progress: &e.loaded}
	}
	kept := &deviceMemory{guests: guests}
	if err := w.graph.Spawn(c, w.tiers.Shared(h.system, h.log, h.slabs, h.disk, h.sums)...); err != nil {
		return err
	}
	err := w.graph.Spawn(c, run.Child{At: w.device, Children: h.system.Supervisor(h.gaveUp),
		Produce: func(n int) actor.Actor { return makeDevice(h, kept, n) }})
	if err != nil {
		return err
	}
	for _, e := range h.engines {
		m := &modelActor{engine: e, records: newRecords()}
		err := e.wiring.graph.Spawn(c, run.Child{At: e.wiring.model, Name: "model/" + pathOf(e.Info.Name),
			Children: h.system.Supervisor(e.gaveUp), Produce: m.begin})
		if err != nil {
			return err
		}
	}
	return nil
}

// fail makes the house unhealthy and ends what it was asked for.
func (r *root) fail(err error) {
	r.house.log.Error().Err(err).Msg("the engine cannot go on")
	r.house.health.set(err)
	for _, e := range r.house.engines {
		e.wiring.hangUpAll.Send(&hangUpAll{err})
	}
}

// stopNext stops the next actor that is still alive; when none is left, the tree is down.
func (r *root) stopNext(c actor.Context) {
	for len(r.left) > 0 {
		alive := slices.ContainsFunc(c.Children(), func(p *actor.PID) bool { return p.Id == r.left[0].Address.Id })
		if alive {
			c.Stop(r.left[0].Address)
			return
		}
		r.left = r.left[1:]
	}
	close(r.stopping.done)
}
