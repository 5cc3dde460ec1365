package actors

import (
	"context"
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
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// House is the facade of a process's engine: the models, which enter and leave, and the device, pool and reader that
// they share. Its methods may be called from any goroutine.
// Wide: it is what all actors of a process share.
type House struct {
	system *run.System
	turns  *run.Turns
	cores  *run.Sharer // nil: nothing else computes where steps do
	log    zerolog.Logger
	wiring *houseWiring
	health *health // ready is closed when the house cannot serve
	device backend.Device
	kept   *deviceMemory
	slabs  *tiers.Slabs
	sums   *uring.Sums // checksums of what was read
	watch  *watch
	hooks

	compute  *trace.Track // spans of the segments and steps of all models
	recorder *recorder    // nil: nobody asked for a trace
	budget   []int64      // bytes for all models, by device in the order of plans: host memory first
	planning sync.Mutex   // held while models are planned: the next ones are planned for what these leave
	closed   sync.Once

	mu      sync.Mutex
	closing bool
	tenants []*tenant
	bars    map[string]bar // by file
}

// bar keeps a model that harmed others from entering again for a while.
type bar struct {
	err   error
	until time.Time
}

// Credits lists the credits of counted edges between the actors that models share.
func (h *House) Credits() []run.Credits { return h.wiring.graph.Credits() }

// Status says what the actors that belong to no model have done.
func (h *House) Status() []run.Status {
	return slices.DeleteFunc(h.system.Status(), func(a run.Status) bool { return h.elsewhere(a.ID, nil) })
}

// Spans returns the latest spans: what was done, by which actor and for how long, in the order in which they ended.
func (h *House) Spans() []trace.Span { return h.system.Spans().Snapshot(nil) }

// Record writes spans as a trace for Perfetto, from now on until ctx ends or the trace has most bytes. The device's
// wait at the beginning, and at the end, is cut to the time of the recording.
func (h *House) Record(ctx context.Context, out io.Writer, most int64) error {
	return h.watch.record().write(ctx, out, most)
}

// DeviceTime says what the device's time went to so far: waits, by cause, and computing, which is the rest. The open
// wait is counted.
func (h *House) DeviceTime() stall.Time { return h.watch.time() }

// Faults returns how many messages went to actors that were gone, without being marked run.Late, and how many their
// receivers do not list. Both are defects.
func (h *House) Faults() (deadLetters, unexpected uint64) { return h.system.Faults() }

// Device is the path of the device's actor.
func (h *House) Device() string { return h.wiring.device.Address.Id }

// Traits returns the device's traits.
func (h *House) Traits() backend.Traits { return h.device.Traits() }

// Left is how many bytes of host memory the models in the house leave of its budget.
func (h *House) Left() int64 { return h.left()[0] }

// Health returns nil while the house can serve, else why it cannot.
func (h *House) Health() error { return h.health.get() }

// elsewhere says whether an actor belongs to a model other than t and its draft model.
func (h *House) elsewhere(id string, t *tenant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.tenants, func(o *tenant) bool {
		return o != t && (t == nil || o.target != t) && o.has(id)
	})
}

// gaveUp is called by supervision for an actor that keeps failing. If it is a model's, the model fails, else the
// house: it cannot do without it.
func (h *House) gaveUp(child *actor.PID, reason any) {
	err := fmt.Errorf("actor %s keeps failing: %v", child.Id, reason)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.tenants {
		if t.has(child.Id) {
			t.fail(err)
			return
		}
	}
	h.wiring.failed.Send(&run.Failed{Err: err})
}

// names are the names of the models that are in the house.
func (h *House) names() map[string]bool {
	taken := map[string]bool{}
	for _, t := range h.tenants {
		taken[t.spec.info.Name] = true
	}
	return taken
}

// keyOf is the key of a model's file in bars.
func keyOf(f *gguf.File) string {
	part := f.Part(0)
	return part.Path + "\x00" + part.Name
}

// left is how many bytes the models in the house leave of its budget, by device in the order of plans; at least one of
// each.
func (h *House) left() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.Clone(h.budget)
	for i := range left {
		for _, t := range h.tenants {
			left[i] -= t.stay.takes[i]
		}
		left[i] = max(left[i], 1)
	}
	return left
}

// lessened returns a device's traits with so many bytes free, by device.
func lessened(t backend.Traits, left []int64) backend.Traits {
	if t.Devices == nil {
		if t.Free > 0 {
			t.Free = left[len(left)-1]
		}
		return t
	}
	t.Devices = slices.Clone(t.Devices)
	for i := range t.Devices {
		if d := &t.Devices[i]; d.Free > 0 {
			d.Free = left[i]
		}
	}
	return t
}

// takes is how many bytes a model takes by its plan, by device.
func (s *spec) takes() (all []int64) {
	for _, t := range s.plan.Takes {
		all = append(all, t.Bytes())
	}
	besides := s.besides()
	all[0] += besides.Weights + besides.Scratch
	return all
}

// measured corrects how many bytes a model takes of devices' own memory, once it was compiled there.
func (h *House) measured(t *tenant, m *backend.Memory) {
	own := ownOf(m, h.device.Traits())
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range own {
		if i > 0 && own[i] != nil {
			t.stay.takes[i] = own[i].Own()
		}
	}
}

// ownOf is what a model takes of devices' own memory, by device in the order of plans; nil for devices without memory
// of their own.
func ownOf(m *backend.Memory, t backend.Traits) (all []*backend.Memory) {
	devices := devicesOf(t)
	for i := range devices {
		var own *backend.Memory
		switch {
		case devices[i].Memory != backend.OwnMemory:
		case m.Devices != nil:
			own = &m.Devices[i]
		case i == len(devices)-1: // the others compute nothing of it
			own = m
		}
		all = append(all, own)
	}
	return all
}

// barred fails a model that harms others, and keeps it from entering again for lostWindow.
func (h *House) barred(t *tenant, err error) {
	h.mu.Lock()
	at := now()
	for key, b := range h.bars {
		if !at.Before(b.until) {
			delete(h.bars, key)
		}
	}
	h.bars[keyOf(t.spec.file)] = bar{err, at.Add(lostWindow)}
	h.mu.Unlock()
	t.fail(err)
}
