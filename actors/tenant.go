package actors

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/tiers"
)

// tenant is a model of the house: what its facade and the makers of its actors know of it. An actor is given the parts
// that it uses.
type tenant struct {
	spec   *spec
	tape   *tape // of its token trace; nil: none
	wiring *modelWiring
	log    zerolog.Logger
	health *health // why this model alone cannot serve
	stats  stats
	loaded tiers.Progress
	opened atomic.Uint64 // requests so far

	// What outlives incarnations of actors.
	generations atomic.Uint64        // of the scheduler
	sequences   atomic.Uint64        // so far
	sampling    atomic.Pointer[step] // what the sampler works on
	masking     atomic.Pointer[mask] // what masks works on
}

// fail makes the model unhealthy, and no other, and ends what it was asked for.
func (t *tenant) fail(err error) {
	if t.health.get() != nil {
		return // it has been said
	}
	t.log.Error().Err(err).Str("model", t.spec.info.Name).Msg("the model cannot go on")
	t.health.set(err)
	t.wiring.hangUpAll.Send(&hangUpAll{err})
}

// gaveUp is called by supervision for an actor that keeps failing and that the model cannot do without.
func (t *tenant) gaveUp(child *actor.PID, reason any) {
	t.fail(fmt.Errorf("actor %s keeps failing: %v", child.Id, reason))
}

// weights are the bytes of weights that have arrived, of how many.
func (t *tenant) weights() (done, total int64) {
	total = t.spec.bytes()
	if t.spec.layout.InPlace() != nil {
		return total, total
	}
	return t.loaded.Bytes(), total
}

// has says whether an actor is the model's own.
func (t *tenant) has(id string) bool {
	path := t.wiring.model.Address.Id
	return id == path || strings.HasPrefix(id, path+"/")
}
