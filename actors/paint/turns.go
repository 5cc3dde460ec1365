package paint

import (
	"context"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Turning is a device whose segments are computed in turns with others on the same cores, until a context ends. s may
// be nil: nobody else computes there.
func Turning(ctx context.Context, d backend.Device, s *run.Sharer) backend.Device {
	return &turning{d, ctx, s}
}

type turning struct {
	backend.Device
	ctx    context.Context //nolint:containedctx // of one picture, as the device is
	sharer *run.Sharer
}

func (t *turning) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if t.ctx.Err() != nil {
		return nil, context.Cause(t.ctx)
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
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if t.sharer != nil {
		if err := t.sharer.Take(t.ctx); err != nil {
			return err
		}
		defer t.sharer.Give()
	}
	return m.Model.Run(w, s)
}
