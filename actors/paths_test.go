package actors

import (
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// at is the address of an actor of an engine's model, or of its house, by the last part of its path; draft/NAME, of the
// model's draft model.
func (e *Engine) at(name string) *actor.PID {
	path := e.wiring.model.Address.Id
	switch first, rest, _ := strings.Cut(name, "/"); first {
	case "draft":
		return (&Engine{e.draft.spec.info, e.house, e.draft}).at(rest)
	case "device", "reader", "pool":
		path = e.house.wiring.house.Address.Id + "/" + name
	case "model":
	default:
		path += "/" + name
	}
	return e.house.system.Address(path)
}

// crash kills an actor.
func (e *Engine) crash(name string) { e.house.system.Crash(e.at(name)) }

// room is how many messages the mailbox of the actor with an id holds.
func (e *Engine) room(id string) int {
	w, h := e.wiring, e.house.wiring
	for _, at := range []run.Place{w.model, w.sessions, w.scheduler, w.kv, w.mover, w.sampler} {
		if at.Address.Id == id {
			return w.graph.Capacity(at)
		}
	}
	for _, at := range []run.Place{h.house, h.device, h.tiers.Prefetcher, h.tiers.Uploader,
		h.tiers.Packer, h.tiers.Reader, h.tiers.Pool} {
		if at.Address.Id == id {
			return h.graph.Capacity(at)
		}
	}
	return w.graph.Capacity(w.session)
}
