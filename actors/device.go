package actors

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
)

// All that the device accepts: flush and *step (scheduler), and
type (
	// loaded, from the prefetcher, or from itself where nothing has to be loaded: every weight is on the device.
	loaded struct{ incarnation int }
)

func (*loaded) late() {}

// device owns the compiled model: it runs steps, segment by segment. Its children bring the weights. A restart
// compiles and loads afresh, since what failed may have left anything in memory; the KV cache is lost with it.
type device struct {
	*core
	incarnation int
	resident    bool
	gen         uint64
	owed        *flush // to be answered when the weights are there
}

func (d *device) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		d.start(c)
	case *actor.Stopped:
		d.closeModel()
	case *loaded:
		if m.incarnation == d.incarnation {
			d.resident = true
			c.Send(d.engine, m)
			d.answer(c)
		}
	case *flush:
		d.gen, d.owed = m.gen, m
		d.answer(c)
	case *step:
		if m.gen == d.gen {
			d.compute(c, m)
		}
	default:
		d.lifecycle(c)
	}
}

func (d *device) start(c actor.Context) {
	d.closeModel()
	var model backend.Model
	var err error
	d.turns.leave(func() { model, err = d.backend.Compile(d.bound, d.layout) })
	if err != nil {
		c.Send(d.engine, &failed{err})
		return
	}
	d.model = model
	if err := d.spawnLoaders(c); err != nil {
		c.Send(d.engine, &failed{err})
		return
	}
	if d.incarnation > 0 {
		c.Send(d.scheduler, &restarted{from: partyDevice, during: d.computing.Swap(nil)})
	}
}

// spawnLoaders starts the actors that bring the weights, if they are not in place.
func (d *device) spawnLoaders(c actor.Context) error {
	if d.layout.InPlace != nil {
		c.Send(c.Self(), &loaded{d.incarnation})
		return nil
	}
	complete := make(map[int]int64)
	fetcher := &prefetcher{core: d.core, incarnation: d.incarnation, pending: make(map[int]bool)}
	return errors.Join(
		d.spawn(c, "packer", "packer", nil, func(n int) actor.Actor { return &packer{core: d.core, incarnation: n} }),
		d.spawn(c, "uploader", "uploader", nil, func(n int) actor.Actor { return newUploader(d.core, n, complete) }),
		d.spawn(c, "prefetcher", "prefetcher", nil, func(int) actor.Actor { return fetcher }),
	)
}

func (d *device) closeModel() {
	if d.model == nil {
		return
	}
	if err := d.model.Close(); err != nil {
		d.log.Error().Err(err).Msg("closing the model")
	}
	d.model = nil
}

func (d *device) answer(c actor.Context) {
	if d.owed != nil && d.resident {
		c.Send(d.scheduler, &flushed{d.owed.gen, partyDevice})
		d.owed = nil
	}
}

// compute runs a step and hands it to the sampler; a failed or abandoned one goes straight back.
func (d *device) compute(c actor.Context, m *step) {
	d.computing.Store(m)
	d.turns.compute(func() {
		m.times.started = now()
		m.err = d.runSegments(m)
		m.times.computed = now()
	})
	d.computing.Store(nil)
	if m.err != nil {
		c.Send(d.scheduler, m)
		return
	}
	c.Send(d.sampler, m)
}

// errAbandoned ends a step of which nobody wants the result any more.
var errAbandoned = errors.New("step abandoned: its sequences are cancelled")

// runSegments keeps account of the time by kind of segment: one look at the clock for each.
func (d *device) runSegments(m *step) error {
	clear(m.times.segments[:])
	before := m.times.started
	for i := range d.bound.Segments {
		if abandoned(m.parts) {
			return errAbandoned
		}
		if err := d.model.Run(i, &m.compute); err != nil {
			return fmt.Errorf("%s: %w", segmentName(&d.bound.Segments[i]), err)
		}
		after := now()
		m.times.segments[d.bound.Segments[i].Kind] += after.Sub(before)
		before = after
	}
	return nil
}

func abandoned(parts []batch.Part) bool {
	for _, p := range parts {
		if !p.Seq.Owner.(*sequence).cancelled.Load() {
			return false
		}
	}
	return true
}

func segmentName(s *ir.Segment) string {
	switch {
	case s.Kind == ir.SegEmbed:
		return "embedding"
	case s.Layer < 0:
		return s.Kind.String()
	}
	return fmt.Sprintf("layer %d %s", s.Layer, s.Kind)
}
