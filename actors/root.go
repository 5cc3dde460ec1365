package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// All that the house's root actor accepts: *loaded (device), and
type (
	// failed, from whoever cannot do its part: the house cannot serve.
	failed struct{ err error }
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
	case *failed:
		r.fail(m.err)
	case *shutdown:
		r.stopping = m
		for _, e := range r.house.engines {
			r.left = append(r.left, e.wiring.model)
		}
		w := r.house.wiring
		r.left = append(r.left, w.device, w.reader, w.pool)
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
	children := []child{
		{at: w.pool, produce: func(n int) actor.Actor {
			return newPool(h.system, w.poolUsers, n)
		}},
		{at: w.reader, produce: func(n int) actor.Actor {
			return &reader{system: h.system, log: h.log, slabs: h.slabs, open: h.disk, out: w.readerUsers,
				incarnation: n,
				disk:        h.system.Spans().Track(w.reader.Address.Id + "/disk"), gens: map[string]uint64{}}
		}},
		{at: w.device, children: h.system.Supervisor(h.gaveUp), produce: func(n int) actor.Actor {
			return makeDevice(h, kept, n)
		}},
	}
	for _, e := range h.engines {
		m := &modelActor{engine: e, records: newRecords()}
		children = append(children, child{at: e.wiring.model, graph: e.wiring.graph, name: "model/" + pathOf(e.Info.Name),
			children: h.system.Supervisor(e.gaveUp), produce: m.begin})
	}
	return spawnAll(c, h.system, w.graph, children)
}

// child is an actor to be started.
type child struct {
	at       run.Place
	name     string     // by default its kind
	graph    *run.Graph // by default its parent's
	children *run.Supervisor
	produce  func(incarnation int) actor.Actor
}

func spawnAll(c actor.Context, s *run.System, g *run.Graph, children []child) error {
	for _, x := range children {
		if err := spawn(c, s, g, x); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts a child of c's actor.
func spawn(c actor.Context, s *run.System, g *run.Graph, x child) error {
	name := x.name
	if name == "" {
		name = x.at.Kind
	}
	if x.graph != nil {
		g = x.graph
	}
	return s.Spawn(c, run.Spec{
		Name: name, Capacity: g.Capacity(x.at), Line: x.at.Line, Children: x.children, Produce: x.produce,
	})
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
