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
	health   *health
	stopping *shutdown
	left     []*actor.PID // to be stopped, first one first
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
		r.left = []*actor.PID{r.sessions, r.scheduler, r.sampler, r.kv, r.device, r.reader, r.pool}
		r.stopNext(c)
	case *actor.Terminated:
		if r.stopping != nil && len(r.left) > 0 && m.Who.Id == r.left[0].Id {
			r.left = r.left[1:]
			r.stopNext(c)
		}
	default:
		r.system.Lifecycle(c)
	}
}

func (r *root) start(c actor.Context) error {
	s := &sessions{core: r.core, records: make(map[string]*record)}
	s.supervisor = r.system.Supervisor(s.gaveUp)
	children := []struct {
		name     string
		strategy *run.Supervisor
		produce  func(incarnation int) actor.Actor
	}{
		{"pool", nil, func(n int) actor.Actor { return &pool{core: r.core, incarnation: n} }},
		{"reader", nil, func(n int) actor.Actor { return &reader{core: r.core, incarnation: n} }},
		{"kv", nil, func(n int) actor.Actor { return &kvOwner{core: r.core, incarnation: n} }},
		{"sampler", nil, func(n int) actor.Actor { return &sampler{core: r.core, incarnation: n} }},
		{"device", r.system.Supervisor(r.gaveUp), func(n int) actor.Actor { return &device{core: r.core, incarnation: n} }},
		{"scheduler", nil, func(n int) actor.Actor { return &scheduler{core: r.core, incarnation: n} }},
		{"sessions", s.supervisor, func(int) actor.Actor { return s }},
	}
	for _, child := range children {
		if err := r.spawn(c, child.name, child.name, child.strategy, child.produce); err != nil {
			return err
		}
	}
	return nil
}

// fail makes the engine unhealthy and ends what it was asked for.
func (r *root) fail(c actor.Context, err error) {
	r.log.Error().Err(err).Msg("the engine cannot go on")
	r.health.set(err)
	c.Send(r.sessions, &hangUpAll{err})
}

// gaveUp is called by supervision for an actor that keeps failing and that the engine cannot do without.
func (t *tree) gaveUp(child *actor.PID, reason any) {
	t.system.Send(t.engine, &failed{fmt.Errorf("actor %s keeps failing: %v", child.Id, reason)})
}

// stopNext stops the next actor that is still alive; when none is left, the tree is down.
func (r *root) stopNext(c actor.Context) {
	for len(r.left) > 0 {
		alive := slices.ContainsFunc(c.Children(), func(p *actor.PID) bool { return p.Id == r.left[0].Id })
		if alive {
			c.Stop(r.left[0])
			return
		}
		r.left = r.left[1:]
	}
	close(r.stopping.done)
}
