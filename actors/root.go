package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

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
	system    *run.System
	log       zerolog.Logger
	health    *health
	graph     *run.Graph
	children  func() []run.Child
	hangUpAll []run.Edge[hangUpAll] // by model
	last      []run.Place           // in the order in which they are stopped
	loaded    map[int]bool          // models whose weights are there
	stopping  *shutdown
}

func (r *root) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if err := r.graph.Spawn(c, r.children()...); err != nil {
			r.fail(err)
		}
	case *loaded:
		if r.loaded[m.guest] = true; len(r.loaded) == len(r.hangUpAll) {
			r.health.set(nil)
		}
	case *run.Failed:
		r.fail(m.Err)
	case *shutdown:
		r.stopping = m
		r.stopNext(c)
	case *actor.Terminated:
		if r.stopping != nil && len(r.last) > 0 && m.Who.Id == r.last[0].Address.Id {
			r.last = r.last[1:]
			r.stopNext(c)
		}
	default:
		r.system.Lifecycle(c)
	}
}

// fail makes the house unhealthy and ends what it was asked for.
func (r *root) fail(err error) {
	r.log.Error().Err(err).Msg("the engine cannot go on")
	r.health.set(err)
	for _, model := range r.hangUpAll {
		model.Send(&hangUpAll{err})
	}
}

// stopNext stops the next actor that is still alive; when none is left, the tree is down.
func (r *root) stopNext(c actor.Context) {
	for len(r.last) > 0 {
		alive := slices.ContainsFunc(c.Children(), func(p *actor.PID) bool { return p.Id == r.last[0].Address.Id })
		if alive {
			c.Stop(r.last[0].Address)
			return
		}
		r.last = r.last[1:]
	}
	close(r.stopping.done)
}
