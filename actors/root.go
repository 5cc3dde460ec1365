package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
)

// Messages that the house's root actor accepts, beside *enter and *leave (facade) and *run.Failed (from an actor that
// cannot do its part: the house cannot serve).
type (
	// shutdown, from the facade when all models have left, asks for the tree to be stopped in order; then done is
	// closed.
	shutdown struct{ done chan struct{} }
)

func (*shutdown) Urgent() {}

// root supervises the tree. It starts the actors, and stops them in order: those that send requests before those that
// answer.
type root struct {
	system     *run.System
	log        zerolog.Logger
	health     *health
	graph      *run.Graph
	supervisor *run.Supervisor // of its children
	shared     func() []run.Child
	models     []*lodger
	leaving    map[string]*leave // by the id of the model's actor, which is stopped first
	last       []run.Place       // shared actors, in the order in which they are stopped
	stopping   *shutdown
}

func (r *root) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		all := r.shared()
		for _, m := range r.models {
			all = append(all, m.child)
		}
		if err := r.graph.Spawn(c, all...); err != nil {
			r.fail(err)
		}
	case *enter:
		r.models = append(r.models, m.lodger)
		m.to.enter.Send(m)
		if err := r.graph.Spawn(c, m.child); err != nil {
			m.guest.tell.fail(err)
			m.here()
		}
	case *leave:
		r.leave(c, m)
	case *run.Failed:
		r.fail(m.Err)
	case *shutdown:
		r.stopping = m
		r.stopNext(c)
	case *actor.Terminated:
		r.terminated(c, m.Who.Id)
	default:
		r.system.Lifecycle(c)
	}
}

// leave stops a model's actors, then passes leave on to the device.
func (r *root) leave(c actor.Context, m *leave) {
	r.models = slices.DeleteFunc(r.models, func(o *lodger) bool { return o == m.lodger })
	at := m.child.At.Address
	if !r.alive(c, at.Id) {
		m.to.leave.Send(m)
		return
	}
	r.leaving[at.Id] = m
	c.Stop(at)
}

func (r *root) terminated(c actor.Context, who string) {
	if m := r.leaving[who]; m != nil {
		delete(r.leaving, who)
		r.supervisor.Forget(who)
		m.to.leave.Send(m)
	}
	if r.stopping != nil && len(r.last) > 0 && who == r.last[0].Address.Id {
		r.last = r.last[1:]
		r.stopNext(c)
	}
}

// fail makes the house unhealthy, and fails all requests.
func (r *root) fail(err error) {
	r.log.Error().Err(err).Msg("the engine cannot go on")
	r.health.set(err)
	for _, m := range r.models {
		m.hangUp(err)
	}
}

// stopNext stops the next actor that is still alive; when none is left, the tree is down.
func (r *root) stopNext(c actor.Context) {
	for len(r.last) > 0 {
		if r.alive(c, r.last[0].Address.Id) {
			c.Stop(r.last[0].Address)
			return
		}
		r.last = r.last[1:]
	}
	close(r.stopping.done)
}

func (*root) alive(c actor.Context, id string) bool {
	return slices.ContainsFunc(c.Children(), func(p *actor.PID) bool { return p.Id == id })
}
