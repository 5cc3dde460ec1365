package actors

import (
	"fmt"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// All that the engine's root actor accepts: *loaded (device), and
type (
	// failed, from whoever cannot do its part: the engine cannot serve.
	failed struct{ err error }
	// shutdown, from the facade: stop the tree in order, then close done.
	shutdown struct{ done chan struct{} }
)

func (*shutdown) Urgent() {}

// root supervises the tree. It starts the actors, and stops them in order: those who ask before those who answer.
type root struct {
	*core
	out      rootEdges
	health   *health
	stopping *shutdown
	left     []run.Place // to be stopped, first one first
}

// health is whether the engine can serve. Any goroutine may read it.
type health struct {
	mu    sync.Mutex
	err   error
	ready chan struct{} // closed when the model is loaded, or cannot be
	once  sync.Once
}

func newHealth() *health { return &health{ready: make(chan struct{})} }

func (h *health) set(err error) {
	h.mu.Lock()
	if h.err == nil {
		h.err = err
	}
	h.mu.Unlock()
	h.once.Do(func() { close(h.ready) })
}

func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (r *root) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if err := r.start(c); err != nil {
			r.fail(c, err)
		}
	case *loaded:
		r.health.set(nil)
	case *failed:
		r.fail(c, m.err)
	case *shutdown:
		r.stopping = m
		p := &r.wiring.places
		r.left = []run.Place{p.sessions, p.scheduler, p.sampler, p.kv, p.device, p.reader, p.pool}
		r.stopNext(c)
	case *actor.Terminated:
		if r.stopping != nil && len(r.left) > 0 && m.Who.Id == r.left[0].Address.Id {
			r.left = r.left[1:]
			r.stopNext(c)
		}
	default:
		r.system.Lifecycle(c)
	}
}

func (r *root) start(c actor.Context) error {
	w, at := r.wiring, &r.wiring.places
	s := &sessions{core: r.core, out: w.sessions, records: make(map[string]*record)}
	s.supervisor = r.system.Supervisor(s.gaveUp)
	segments := r.system.Spans().Track(at.device.Address.Id + "/segments")
	children := []struct {
		at       run.Place
		children *run.Supervisor
		produce  func(incarnation int) actor.Actor
	}{
		{at.pool, nil, func(n int) actor.Actor { return &pool{core: r.core, out: w.pool, incarnation: n} }},
		{at.reader, nil, func(n int) actor.Actor { return &reader{core: r.core, out: w.reader, incarnation: n} }},
		{at.kv, nil, func(n int) actor.Actor { return &kvOwner{core: r.core, out: w.kv, incarnation: n} }},
		{at.sampler, nil, func(n int) actor.Actor { return &sampler{core: r.core, out: w.sampler, incarnation: n} }},
		{at.device, r.system.Supervisor(r.gaveUp),
			func(n int) actor.Actor {
				return &device{core: r.core, out: w.device, incarnation: n, spans: segments}
			}},
		{at.scheduler, nil,
			func(n int) actor.Actor { return &scheduler{core: r.core, out: w.scheduler, incarnation: n} }},
		{at.sessions, s.supervisor, func(int) actor.Actor { return s }},
	}
	for _, child := range children {
		if err := r.spawn(c, child.at, child.at.Kind, child.children, child.produce); err != nil {
			return err
		}
	}
	return nil
}

// fail makes the engine unhealthy and ends what it was asked for.
func (r *root) fail(c actor.Context, err error) {
	r.log.Error().Err(err).Msg("the engine cannot go on")
	r.health.set(err)
	r.out.hangUpAll.Send(&hangUpAll{err})
}

// gaveUp is called by supervision for an actor that keeps failing and that the engine cannot do without.
func (k *core) gaveUp(child *actor.PID, reason any) {
	k.wiring.root.failed.Send(&failed{fmt.Errorf("actor %s keeps failing: %v", child.Id, reason)})
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
