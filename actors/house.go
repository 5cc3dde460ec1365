package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	masking func()        // called before each mask that is found beside steps
	quick   int           // steps that grammars may take between two steps of the model
	tenants []*tenant
	watch   *watch

	mu      sync.Mutex
	closing bool
	open    int           // requests of all models
	empty   chan struct{} // closed when closing and no request is open
	closed  sync.Once

	recorder *recorder // nil: nobody asked for a trace
}

// Credits lists the credits that are counted between actors that models share, or a model's and those.
func (h *House) Credits() []run.Credits { return h.wiring.graph.Credits() }

// Status says what the actors that belong to no model have done.
func (h *House) Status() []run.Status {
	return slices.DeleteFunc(h.system.Status(), func(a run.Status) bool { return h.elsewhere(a.ID, nil) })
}

// Spans returns what was done last, by whom and for how long, in the order in which it ended.
func (h *House) Spans() []trace.Span { return h.system.Spans().Snapshot(nil) }

// Record writes spans as a trace for Perfetto, from now on until ctx ends or the trace has so many bytes. What the
// device is at when it begins, or ends, is cut there.
func (h *House) Record(ctx context.Context, out io.Writer, most int64) error {
	return h.watch.record().write(ctx, out, most)
}

// DeviceTime says what the device did with its time so far: what it did not wait it computed. The wait at hand is in
// it.
func (h *House) DeviceTime() stall.Time { return h.watch.time() }

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
	if h.closing || s.layout.InPlace() == nil && s.sharedSlots() == 0 {
		return nil
	}
	return s.file.Check()
}

// Loaded returns how many bytes of weights have arrived, of how many.
func (h *House) Loaded() (done, total int64) {
	for _, t := range h.tenants {
		d, all := t.weights()
		done, total = done+d, total+all
	}
	return done, total
}

// elsewhere says whether an actor is of a model other than t.
func (h *House) elsewhere(id string, t *tenant) bool {
	return slices.ContainsFunc(h.tenants, func(o *tenant) bool { return o != t && o.has(id) })
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
		for _, t := range h.tenants {
			t.wiring.facade.hangUpAll.Send(&hangUpAll{ErrClosed})
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
	for _, t := range h.tenants {
		errs = append(errs, t.spec.file.Close(), t.tape.close())
	}
	return errors.Join(errs...)
}

// gaveUp is called by supervision for an actor that keeps failing and that the house cannot do without.
func (h *House) gaveUp(child *actor.PID, reason any) {
	h.wiring.failed.Send(&run.Failed{Err: fmt.Errorf("actor %s keeps failing: %v", child.Id, reason)})
}
