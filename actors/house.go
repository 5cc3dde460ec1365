package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

// House is the facade of all that runs: models, and the device, pool and reader that they share. Its methods may be
// called from any goroutine.
type House struct {
	system  *run.System
	turns   *run.Turns
	log     zerolog.Logger
	wiring  *houseWiring
	health  *health
	device  backend.Device
	slabs   *pin.Arena
	disk    tiers.OpenDisk
	sums    *uring.Sums   // of what was read
	late    time.Duration // how long a step waits for a drive
	engines []*Engine
	idle    *trace.Wait // of the device

	mu      sync.Mutex
	closing bool
	open    int           // requests of all models
	empty   chan struct{} // closed when closing and no request is open
	closed  sync.Once

	recorder *recorder // nil: nobody asked for a trace

	told struct { // of the device's time, last
		sync.Mutex
		stall.Time
	}
}

func newHouse(c *HouseConfig, specs []*spec, slabs *pin.Arena) *House {
	h := &House{
		system: run.NewSystem(c.Log), log: c.Log, device: c.Device, slabs: slabs, sums: uring.NewSums(),
		health: newHealth(), empty: make(chan struct{}), disk: tiers.OpenRing,
	}
	if c.disk != nil {
		h.disk = c.disk
	}
	h.late = cmp.Or(c.late, usuallyLate)
	h.turns = run.NewTurns(c.Device.Traits().Crowded, batch.Window/4) // waiting must not use up a client's credit
	slots := 0
	for _, s := range specs {
		slots += s.sharedSlots()
	}
	h.wiring = wireHouse(h.system, h.turns, slots)
	h.idle = h.system.Spans().Track(h.wiring.device.Address.Id + "/compute").Waits()
	for _, s := range specs {
		path := h.wiring.house.Address.Id + "/model/" + pathOf(s.info.Name)
		e := &Engine{Info: s.info, house: h, spec: s, health: newHealth(),
			wiring: wireModel(h.system, h.turns, h.wiring, path, s.layout.Ring())}
		for _, a := range []*account{&e.stats.prefill, &e.stats.decode} {
			a.segments = h.system.Spans().Track(h.wiring.device.Address.Id + "/compute")
		}
		h.engines = append(h.engines, e)
	}
	return h
}

// Engines are the models of the house, in the order of their configuration.
func (h *House) Engines() []*Engine { return h.engines }

// Credits lists the credits that are counted between actors that models share, or a model's and those.
func (h *House) Credits() []run.Credits { return h.wiring.graph.Credits() }

// Status says what the actors that belong to no model have done.
func (h *House) Status() []run.Status {
	return slices.DeleteFunc(h.system.Status(), func(a run.Status) bool { return h.elsewhere(a.ID, nil) })
}

// Spans returns what was done last, by whom and for how long, in the order in which it ended.
func (h *House) Spans() []trace.Span { return h.system.Spans().Snapshot(nil) }

// Faults returns how many messages were sent to actors that were gone and did not allow for it, and how many their
// receivers do not list.
func (h *House) Faults() (deadLetters, unexpected uint64) { return h.system.Faults() }

// Device is the path of the device's actor.
func (h *House) Device() string { return h.wiring.device.Address.Id }

// Health returns nil while the house can serve, else why it cannot.
func (h *House) Health() error { return h.health.get() }

// check says whether a model's file, if it is still read, is as it was opened.
func (h *House) check(s *spec) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing || s.layout.InPlace == nil && s.sharedSlots() == 0 {
		return nil
	}
	return s.file.Check()
}

// Loaded returns how many bytes of weights have arrived, of how many.
func (h *House) Loaded() (done, total int64) {
	for _, e := range h.engines {
		d, t := e.Loaded()
		done, total = done+d, total+t
	}
	return done, total
}

// elsewhere says whether an actor is of a model other than e.
func (h *House) elsewhere(id string, e *Engine) bool {
	return slices.ContainsFunc(h.engines, func(o *Engine) bool {
		return o != e && o.has(id)
	})
}

// enter takes a place in the house for a request, unless it is closing.
func (h *House) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return ErrClosed
	}
	h.open++
	return nil
}

func (h *House) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open--; h.open == 0 && h.closing {
		close(h.empty)
	}
}

// Close stops everything: no new requests, those that are open may finish until ctx ends and are cut then; after
// them the actors in order, and the memory. It returns ctx's error if requests were cut.
func (h *House) Close(ctx context.Context) error {
	var err error
	h.closed.Do(func() { err = h.close(ctx) })
	return err
}

func (h *House) close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	if h.open == 0 {
		close(h.empty)
	}
	h.mu.Unlock()

	var cut error
	select {
	case <-h.empty:
	case <-ctx.Done():
		cut = ctx.Err()
		for _, e := range h.engines {
			e.wiring.facade.hangUpAll.Send(&hangUpAll{ErrClosed})
		}
		<-h.empty
	}
	done := make(chan struct{})
	h.wiring.shutdown.Send(&shutdown{done})
	<-done
	errs := []error{cut, h.system.Stop(h.wiring.house.Address), h.recorder.end()}
	h.system.Shutdown()
	return errors.Join(append(errs, h.free())...)
}

// free gives back what the tree stood on. No actor is left.
func (h *House) free() error {
	errs := []error{h.device.Close(), h.slabs.Close(), h.sums.Close()}
	for _, e := range h.engines {
		errs = append(errs, e.spec.file.Close(), e.spec.tape.close())
	}
	return errors.Join(errs...)
}

// gaveUp is called by supervision for an actor that keeps failing and that the house cannot do without.
func (h *House) gaveUp(child *actor.PID, reason any) {
	h.wiring.failed.Send(&run.Failed{Err: fmt.Errorf("actor %s keeps failing: %v", child.Id, reason)})
}

// health is whether all, or a model, can serve. Any goroutine may read it.
type health struct {
	mu    sync.Mutex
	err   error
	ready chan struct{} // closed when everything is loaded, or cannot be
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
