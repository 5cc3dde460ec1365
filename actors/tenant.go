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

// tenant is one model of the house: what its facade knows of it, and what its actors are made from. Each actor is
// given the parts that it uses.
// Wide: all that is kept of a model is found here.
type tenant struct {
	spec   *spec
	track  *track // writes its token trace; nil: it has none
	wiring *modelWiring
	log    zerolog.Logger
	health *health // why this model alone cannot serve; ready is closed when the weights are there
	stats  stats
	loaded tiers.Progress
	caches cacheMemory
	opened atomic.Uint64 // requests so far
	stay   stay
	lodger *lodger // what the root knows of it
	draft  *tenant // its draft model; nil: it has none
	target *tenant // the model whose draft model it is; nil: it is none

	// State that outlives incarnations of the actors.
	generations atomic.Uint64        // the scheduler's latest generation
	sequences   atomic.Uint64        // number of the last sequence
	sampling    atomic.Pointer[step] // what the sampler works on
	masking     atomic.Pointer[mask] // what masks works on

	slots     slots
	outlook   outlook
	carrying  sync.Mutex               // held by who has a transfer
	transfers atomic.Pointer[transfer] // under way
}

// stay is the part of a tenant that is about entering and leaving: which requests are open, and how far it has come in
// or out.
type stay struct {
	index int           // among the device's guests
	here  chan struct{} // closed when its actors have started, or cannot be
	start func()        // closes it; may be repeated
	gone  chan struct{} // closed when the device has nothing of it
	over  chan struct{} // closed when it has left, and err is set
	takes []int64       // bytes of the house's budget, by device; guarded by the house's mutex

	mu     sync.Mutex
	ending bool
	open   int           // requests
	empty  chan struct{} // closed when ending and no request is open
	err    error         // the error of leaving
}

func newStay() stay {
	here := make(chan struct{})
	return stay{here: here, start: sync.OnceFunc(func() { close(here) }), gone: make(chan struct{}),
		over: make(chan struct{}), empty: make(chan struct{})}
}

// begin counts a request as open, unless the tenant is about to leave.
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

// ends says whether close was called.
func (s *stay) ends() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// close lets no more requests begin. It returns false if it was called before.
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

// check returns an error if the model's file, as long as it is read again and again, has changed since it was opened.
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

// finish waits until the open requests have ended. When ctx ends they are cut off, and its error is returned.
func (t *tenant) finish(ctx context.Context) error {
	select {
	case <-t.stay.empty:
		return nil
	case <-ctx.Done():
		t.wiring.facade.hangUpAll.Send(&hangUpAll{ErrClosed})
		t.transfers.Load().end(ErrClosed) // it may wait for a generation to begin
		<-t.stay.empty
		return ctx.Err()
	}
}

// fail makes this model unhealthy, and no other, and fails its requests. A transfer may wait for an actor that is gone.
func (t *tenant) fail(err error) {
	if t.health.get() != nil {
		return // it has been said
	}
	t.log.Error().Err(err).Str("model", t.spec.info.Name).Msg("the model cannot go on")
	t.health.set(err)
	t.wiring.hangUpAll.Send(&hangUpAll{err})
	t.transfers.Load().end(err)
	t.tellTarget()
}

// tellTarget tells the target of a draft model that this one is gone.
func (t *tenant) tellTarget() {
	if t.target != nil {
		t.wiring.parted.At(t.target.wiring.scheduler.Address).Send(&parted{gone: true})
	}
}

// gaveUp is called by supervision for an actor that keeps failing and that the model cannot do without.
func (t *tenant) gaveUp(child *actor.PID, reason any) {
	t.fail(fmt.Errorf("actor %s keeps failing: %v", child.Id, reason))
}

// weights returns how many bytes of weights have arrived, and how many there are.
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
