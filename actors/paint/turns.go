package paint

import (
	"context"
	"sync/atomic"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Turning is a device that computes until a context ends, and then leaves even a segment where it is, if the device
// below can. Its segments are computed in turns with others on the same cores; s may be nil: nobody else computes
// there.
func Turning(ctx context.Context, d backend.Device, s *run.Sharer) backend.Device {
	t := &turning{Device: d, ctx: ctx, sharer: s}
	context.AfterFunc(ctx, func() { t.stop.Store(true) })
	return t
}

type turning struct {
	backend.Device
	ctx    context.Context //nolint:containedctx // of one picture, as the device is
	stop   atomic.Bool     // the context has ended
	sharer *run.Sharer
}

// ended is why nothing is computed on a device any more.
func ended(d backend.Device) error {
	if over := d.Traits().Ended; over != nil {
		return over()
	}
	return nil
}

func (t *turning) Traits() backend.Traits {
	x := t.Device.Traits()
	x.Ended = t.ended
	return x
}

func (t *turning) ended() error {
	if t.ctx.Err() == nil {
		return nil
	}
	return context.Cause(t.ctx)
}

func (t *turning) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := t.ended(); err != nil {
		return nil, err
	}
	m, err := t.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	return &turned{m, t}, nil
}

// turned is a model that waits for a turn before each segment.
type turned struct {
	backend.Model
	device *turning
}

func (m *turned) Run(w backend.Work, s *backend.Step) error {
	t := m.device
	if err := t.ended(); err != nil {
		return err
	}
	if t.sharer != nil {
		if err := t.sharer.Take(t.ctx); err != nil {
			return err
		}
		defer t.sharer.Give()
	}
	w.Stop = &t.stop
	if err := m.Model.Run(w, s); err != nil {
		if gone := t.ended(); gone != nil {
			return gone // rather than that it was stopped
		}
		return err
	}
	return t.ended()
}
