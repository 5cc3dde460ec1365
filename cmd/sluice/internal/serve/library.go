package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/actors/fleet"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/swap"
)

// loader is where the models of serve come from.
type loader struct {
	*compute.Flags
	e      *env.Env
	models catalog
	room   swap.Room
	memory int64          // that the machine had when it began
	shared backend.Device // of all; nil: each model opens one of its own
	free   int64          // of such a device's memory, when there was nothing in it

	collector int64 // the limit of the heap that the environment set

	fleet    *fleet.Fleet[*actors.Engine]
	progress func(done, total int64)                  // of the first loads; nil: nobody asks
	edit     func(name string, m *actors.HouseConfig) // what else is asked of a model
}

// waitingRequests is how many requests may wait for models.
const waitingRequests = 512

// openLoader opens the device, and finds out how much memory there is for models.
func openLoader(e *env.Env, f *compute.Flags, models catalog, keepAlive time.Duration) (*loader, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	device, err := f.OpenDevice(e)
	if err != nil {
		return nil, err
	}
	l := &loader{Flags: f, e: e, models: models, memory: mem.Available(), collector: debug.SetMemoryLimit(-1)}
	l.room.Host = int64(f.RAM)
	if l.room.Host == 0 {
		l.room.Host = place.ForWeights(l.memory, false)
	}
	if t := device.Traits(); t.Memory == backend.OwnMemory {
		l.free, l.room.Device = t.Free, int64(f.VRAM)
		if l.room.Device == 0 {
			l.room.Device = place.ForWeights(t.Free, true)
		}
		err = device.Close()
	} else {
		l.shared = device
	}
	l.limitHeap(l.memory)
	limits := swap.Limits{Room: l.room, KeepAlive: keepAlive, Queue: waitingRequests}
	l.fleet = fleet.New(l, limits, f.Logger(e))
	return l, err
}

// close unloads all, and closes the device.
func (l *loader) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.fleet.Close(ctx) // nothing is left to wait for
	debug.SetMemoryLimit(l.collector)
	if l.shared != nil {
		return l.shared.Close()
	}
	return nil
}

// Names lists the models.
func (l *loader) Names() []string { return l.models.list() }

// Measure plans a model for an empty machine.
func (l *loader) Measure(_ context.Context, name string) (room swap.Room, err error) {
	path, ok := l.models.path(name)
	if !ok {
		return room, fmt.Errorf("its file is not there any more")
	}
	file, err := l.OpenWeights(l.e, path)
	if err != nil {
		return room, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	device, err := l.lend()
	if err != nil {
		return room, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	m := l.ModelOf(name, file)
	m.Weights = l.weights(l.room.Host, device.Traits())
	m.Speeds = compute.SpeedsOf(l.e, file, device)
	p, err := actors.PlanFor(&m, empty{device, l.free})
	if err != nil {
		return room, err
	}
	return l.need(p), nil
}

// weights is the budget of a model for which there is so much room; 0: it has none.
func (l *loader) weights(room int64, t backend.Traits) int64 {
	if l.RAM > 0 || t.Shares && t.Memory == backend.HostMemory && !l.NoRepack {
		return room
	}
	return 0
}

// need is what a model takes of the budgets.
func (l *loader) need(p *actors.Plan) (r swap.Room) {
	switch {
	case p.Apart:
		r = swap.Room{Host: p.Model.Host().Weights + p.Slabs, Device: p.Memory.Weights}
		if l.VRAM == 0 { // of what is free, all has to come
			r.Device += p.Memory.KV + p.Memory.Scratch
		}
	case !l.NoRepack:
		r.Host = p.Model.Host().Weights + p.Slabs
	}
	return swap.Room{Host: min(r.Host, l.room.Host), Device: min(r.Device, l.room.Device)}
}

// Load runs a model.
func (l *loader) Load(ctx context.Context, name string, room swap.Room, progress func(done, total int64)) (
	*actors.Engine, error) {
	path, ok := l.models.path(name)
	if !ok {
		return nil, fmt.Errorf("its file is not there any more")
	}
	left := l.left()
	e, err := l.Open(ctx, l.e, models.NamedFile{Name: name, Path: path}, l.lend, func(h *actors.HouseConfig) {
		h.Models[0].Weights = l.weights(room.Host, h.Device.Traits())
		if l.VRAM > 0 {
			h.Models[0].VRAM = room.Device
		}
		h.Memory = left
		h.Models[0].Progress = func(done, total int64) {
			if progress(done, total); l.progress != nil {
				l.progress(done, total)
			}
		}
		l.edit(name, h)
	})
	if err == nil {
		l.limitHeap(left - l.taken(e))
	}
	return e, err
}

// left is what of the machine's memory nobody was promised.
func (l *loader) left() int64 {
	left := l.memory
	for _, name := range l.Names() {
		if e := l.fleet.Engine(name); e != nil {
			left -= l.taken(e)
		}
	}
	return max(left, 1)
}

// taken is what a model has of the machine's memory; of one on a card, that does not count.
func (l *loader) taken(e *actors.Engine) int64 {
	if l.shared == nil {
		return 0
	}
	return e.Plan().Host().Bytes()
}

// lend is a device for a model, which closes it.
func (l *loader) lend() (backend.Device, error) {
	if l.shared != nil {
		return lent{l.shared}, nil
	}
	return l.OpenDevice(l.e)
}

// lent is a device that others compute on, too.
type lent struct{ backend.Device }

// Close leaves it to them.
func (lent) Close() error { return nil }

// empty is a device as it was when there was nothing in its memory.
type empty struct {
	backend.Device
	free int64
}

func (d empty) Traits() backend.Traits {
	t := d.Device.Traits()
	t.Free = max(t.Free, d.free)
	return t
}
