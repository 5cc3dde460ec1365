//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Device is a backend.Device on a GPU. It opens its card again when that was lost.
type Device struct {
	*card
	options Options
	pick    pick
	facts   vk.Facts      // as it was found
	bout    time.Duration // that a submit should take at most; 0: there is no bound
	speed   speed
	ahead   bool // kernels are compiled before they are needed: a CPU that computes has no time for it
}

const (
	flight       = 2 // steps in flight: one is computed, the next one waits at the queue
	uploadStages = 8 // pieces of weights under way: as many as the program brings at once
)

// pick chooses one of the loader's devices.
type pick func([]*vk.Physical) (*vk.Physical, error)

// newDevice opens what is picked.
func newDevice(p pick, o Options) (backend.Device, error) {
	c, err := openCard(p, o)
	if err != nil {
		return nil, err
	}
	return &Device{card: c, options: o, pick: p, facts: c.d.Facts, bout: boutOf(&c.d.Facts),
		ahead: c.d.Facts.Kind != vk.CPU}, nil
}

// Name is the card's.
func (v *Device) Name() string { return "vulkan " + v.facts.Name }

// Traits: steps are computed beside the program, and tokens are drawn here, unless from too many.
func (v *Device) Traits() backend.Traits {
	t := backend.Traits{Flight: flight, Draws: true, Shares: true, Memory: backend.OwnMemory, Free: free(&v.facts),
		Bytes: groupBytes, Apart: v.kernels.apart, Halves: v.kernels.attendSquares}
	t.Times = v.computing.bits > 0
	if v.facts.Has.Float64 {
		t.Among = MaxTopK
	}
	return t
}

// free is what was free of the device's own memory when it was opened, as the driver saw it: other programs have the
// rest. It is never 0, which would say that there is no such memory.
func free(f *vk.Facts) int64 {
	most := int64(1)
	for _, h := range f.Heaps {
		if h.Local {
			most = max(most, int64(h.Budget)-int64(h.Used))
		}
	}
	return most
}

// Compile plans the program's segments, takes the memory and waits for weights.
func (v *Device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, v.Traits()); err != nil {
		return nil, err
	}
	if c.Inputs != nil {
		return nil, fmt.Errorf("a Vulkan device does not add up the inputs of products: use --device cpu: %w",
			errors.ErrUnsupported)
	}
	if v.queue.alive(nil) != nil {
		if err := v.reopen(); err != nil {
			return nil, err
		}
	}
	m, err := compile(v, p, c)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// reopen closes a card that was lost, whose models are closed, and opens it again. Only Compile does: nothing else of
// the device is used then.
func (v *Device) reopen() error {
	left := v.card.close() // that it was lost is known; one that hangs may have been left as it is
	c, err := openCard(v.pick, v.options)
	if err != nil {
		return fmt.Errorf("%w: %s cannot be opened again: %w: sluice doctor says what there is", backend.ErrLost,
			v.facts.Name, errors.Join(err, left))
	}
	v.card = c
	return nil
}

// Close keeps what was compiled for the next time, and closes the device.
func (v *Device) Close() error {
	if v.cache != "" && !v.closed && v.queue.alive(nil) == nil {
		_ = SaveCache(v.d, v.cache) // as OpenCache: nobody loses more than time
	}
	return v.card.close()
}
