package actors

import (
	"context"
	"fmt"
	"strings"
	"sync"
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
	health *health // why this model alone cannot serve; it is ready when the weights are there
	stats  stats
	loaded tiers.Progress
	caches cacheMemory
	opened atomic.Uint64 // requests so far
	stay   stay
	lodger *lodger // as the root knows it

	// What outlives incarnations of actors.
	generations atomic.Uint64        // of the scheduler
	sequences   atomic.Uint64        // so far
	sampling    atomic.Pointer[step] // what the sampler works on
	masking     atomic.Pointer[mask] // what masks works on
}

// stay is a tenant's time in the house.
type stay struct {
	index int           // among the device's guests
	here  chan struct{} // closed when its actors have started
	gone  chan struct{} // closed when the device has nothing of it
	over  chan struct{} // closed when it has left
	takes []int64       // of the house's budget; the house's mutex guards it

	mu     sync.Mutex
	ending bool
	open   int           // requests
	empty  chan struct{} // closed when ending and no request is open
	err    error         // of leaving
}

func newStay() stay {
	return stay{here: make(chan struct{}), gone: make(chan struct{}), over: make(chan struct{}),
		empty: make(chan struct{})}
}

// begin takes a place for a request, unless the tenant is about to leave.
func (s *stay) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return ErrClosed
	}
	s.open++
	return nil
}

func (s *stay) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open == 0 && s.ending {
		close(s.empty)
	}
}

// close lets no more requests begin. It returns false if that was so already.
func (s *stay) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return false
	}
	s.ending = true
	if s.open == 0 {
		close(s.empty)
	}
	return true
}

// check says whether the model's file, if it is still read, is as it was opened.
func (t *tenant) check() error {
	if t.spec.layout.InPlace() == nil && t.spec.sharedSlots() == 0 {
		return nil
	}
	t.stay.mu.Lock()
	defer t.stay.mu.Unlock()
	if t.stay.ending {
		return nil // it may be closed
	}
	return t.spec.file.Check()
}

// finish waits until the requests that are open have ended. When ctx ends they are cut, and its error is returned.
func (t *tenant) finish(ctx context.Context) error {
	select {
	case <-t.stay.empty:
		return nil
	case <-ctx.Done():
		t.wiring.facade.hangUpAll.Send(&hangUpAll{ErrClosed})
		<-t.stay.empty
		return ctx.Err()
	}
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
