package exec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// flight is how many steps are in flight: one is computed, the next one waits at the queue.
const flight = 2

// Device is a backend.Device over a driver. It opens its card again when that was lost.
type Device struct {
	*card
	open    func() (driver.Device, error)
	facts   driver.Facts  // of the device as it was opened first
	longest time.Duration // longest time that a submission should take; 0: there is no bound
	speed   speed
	ahead   bool // kernels are compiled before steps need them; not where the CPU emulates a card
}

// New opens a device.
func New(open func() (driver.Device, error)) (*Device, error) {
	v := &Device{open: open}
	d, err := open()
	if err != nil {
		return nil, err
	}
	if v.card, err = newCard(d); err != nil {
		return nil, err
	}
	v.facts = *d.Facts()
	v.longest, v.ahead = longestOf(&v.facts), !v.facts.Software
	return v, nil
}

// Name is the name of the API and of the card, in lower case.
func (v *Device) Name() string { return strings.ToLower(v.facts.API) + " " + v.facts.Name }

// Traits implements backend.Device: steps are computed while the program goes on, and tokens are drawn on the device,
// unless more than MaxTopK may be chosen.
func (v *Device) Traits() backend.Traits {
	return backend.Traits{Flight: flight, Draws: kernel.MaxTopK, Shares: true, Memory: backend.OwnMemory,
		Free: max(1, int64(v.facts.Free)), Bytes: v.groupBytes, Apart: v.kernels.Apart, Lacks: plan.Lacks,
		Halves: v.facts.Halves, Clock: v.computing.bits > 0, Meter: v, Driver: v.facts.Driver}
}

// Compile plans the program's segments and takes their memory; weights are uploaded after it.
func (v *Device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := v.laid(p, c, nil)
	if err == nil {
		err = m.open()
	}
	switch {
	case m == nil:
		return nil, err
	case err != nil:
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// laid plans the program's segments and takes their memory. After an error the model, if there is one, is
// only closed.
func (v *Device) laid(p *ir.Bound, c backend.Config, team *plan.Team) (*model, error) {
	if err := c.Check(p, v.Traits()); err != nil {
		return nil, err
	}
	if c.Inputs != nil || c.Stored != nil {
		return nil, fmt.Errorf("a %s device does not show the inputs of products, and what caches store: use --device cpu: %w",
			v.facts.API, errors.ErrUnsupported)
	}
	if v.queue.alive(nil) != nil {
		if v.card.models.Load() > 0 {
			return nil, fmt.Errorf("%w: %s: its models have to be closed before it is opened again", backend.ErrLost, v.facts.Name)
		}
		if err := v.reopen(); err != nil {
			return nil, err
		}
	}
	v.card.models.Add(1)
	return compile(v, p, c, team)
}

// reopen closes a lost card, whose models have been closed, and opens it again. Only Compile calls it, when nothing
// else uses the device.
func (v *Device) reopen() error {
	left := v.card.close() // an error is reported below; a card that hangs may not close
	d, err := v.open()
	if err == nil {
		var c *card
		if c, err = newCard(d); err == nil {
			v.card = c
			return nil
		}
	}
	return fmt.Errorf("%w: %s cannot be opened again: %w: sluice doctor says what there is", backend.ErrLost,
		v.facts.Name, errors.Join(err, left))
}

// Close closes the device. The driver keeps what it compiled for the next time.
func (v *Device) Close() error { return v.card.close() }

// groupBytes is the most memory of the device that a group takes, in bytes.
func (v *Device) groupBytes(p *ir.Bound, g *ir.Group) (total int64) {
	for _, r := range g.Weights {
		w := &p.Weights[r]
		from, to := g.Rows(w)
		total += v.weightBytes(p.Types[r], g.Use, to-from, w.Cols)
	}
	return total
}

// weightBytes is the memory of a weight, or of some of its rows.
func (v *Device) weightBytes(t quant.Type, use ir.Use, rows, cols int) int64 {
	if use == ir.Vector {
		return int64(aligned(uint64(4 * kernel.PaddedWidth(rows*cols))))
	}
	x, err := v.kernels.Matrix(t, rows, cols, false)
	if err != nil {
		return 0 // Compile refuses it
	}
	return int64(aligned(x.Bytes()))
}
