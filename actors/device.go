package actors

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
)

// All that the device accepts: flush and *step (scheduler), and
type (
	// loaded, from the prefetcher, or from itself where nothing has to be loaded: every weight is on the device.
	loaded struct{ incarnation int }
	// computed, from the device's own threads: a step that it worked on beside the actors has ended.
	computed struct{ step *step }
)

// stepRing, to the scheduler before flushed: the steps of the model, as many as may be in flight.
type stepRing struct {
	gen   uint64
	steps []*step
}

func (*stepRing) Late() {}
func (*computed) Late() {}

func (*loaded) Late() {}

// device owns the compiled model: it runs steps, segment by segment. Its children bring the weights. A restart
// compiles and loads afresh, since what failed may have left anything in memory; the KV cache is lost with it.
type device struct {
	*core
	out         deviceEdges
	incarnation int
	spans       *trace.Track // of segments
	resident    bool
	gen         uint64
	owed        *run.Flush // to be answered when the weights are there
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
			d.out.loaded.Send(m)
			d.answer(c)
		}
	case *run.Flush:
		d.gen, d.owed = m.Gen, m
		d.answer(c)
	case *step:
		if m.gen == d.gen {
			d.compute(c, m)
		}
	case *computed:
		if m.step.gen == d.gen {
			d.computed(c, m.step)
		}
	default:
		d.system.Lifecycle(c)
	}
}

func (d *device) start(c actor.Context) {
	d.closeModel()
	var model backend.Model
	var err error
	d.turns.Leave(func() { model, err = d.backend.Compile(d.bound, d.layout) })
	if err != nil {
		d.out.broken.Send(&failed{err})
		return
	}
	d.model = model
	if err := d.spawnLoaders(c); err != nil {
		d.out.broken.Send(&failed{err})
		return
	}
	if d.incarnation > 0 {
		d.out.restarted.Send(&restarted{During: d.computing.Swap(nil)})
	}
}

// spawnLoaders starts the actors that bring the weights, if they are not in place.
func (d *device) spawnLoaders(c actor.Context) error {
	if d.layout.InPlace != nil {
		d.out.inPlace.Send(&loaded{d.incarnation})
		return nil
	}
	complete := make(map[int]int64)
	w, at := d.wiring, &d.wiring.places
	fetcher := &prefetcher{core: d.core, out: w.prefetcher, incarnation: d.incarnation, pending: make(map[int]bool)}
	fetcher.out.fetch.Reset()
	return errors.Join(
		d.spawn(c, at.packer, "packer", nil,
			func(n int) actor.Actor { return &packer{core: d.core, out: w.packer, incarnation: n} }),
		d.spawn(c, at.uploader, "uploader", nil,
			func(n int) actor.Actor { return newUploader(d.core, n, complete) }),
		d.spawn(c, at.prefetcher, "prefetcher", nil, func(int) actor.Actor { return fetcher }),
	)
}

func (d *device) closeModel() {
	if d.model == nil {
		return
	}
	for _, s := range d.model.Steps() { // they may still be on their way to the sampler
		s.Logits = nil
	}
	if err := d.model.Close(); err != nil {
		d.log.Error().Err(err).Msg("closing the model")
	}
	d.model = nil
}

func (d *device) answer(c actor.Context) {
	if d.owed != nil && d.resident {
		r := &stepRing{gen: d.owed.Gen}
		for _, s := range d.model.Steps() {
			r.steps = append(r.steps, newStep(d.limits.Seqs, s, func(m *step) { d.out.computed.Send(&computed{m}) }))
		}
		d.out.ring.Send(r)
		d.owed.Done()
		d.owed = nil
	}
}

// compute has the device work on a step. One that computes on the processor is done with it here.
func (d *device) compute(c actor.Context, m *step) {
	d.computing.Store(m)
	d.turns.Compute(func() {
		m.times.started = now()
		m.err = d.enqueue(m)
		d.model.Finish(m.compute, m.ended)
	})
	if m.left() {
		d.computed(c, m)
	}
}

// computed hands a step to the sampler; a failed or abandoned one goes straight back.
func (d *device) computed(c actor.Context, m *step) {
	m.times.computed = now()
	d.computing.Store(nil)
	if m.err != nil {
		d.out.failed.Send(m)
		return
	}
	d.out.step.Send(m)
}

// errAbandoned ends a step of which nobody wants the result any more.
var errAbandoned = errors.New("step abandoned: its sequences are cancelled")

// enqueue keeps account of the time by kind of segment: one look at the clock for each.
func (d *device) enqueue(m *step) error {
	clear(m.times.segments[:])
	before := m.times.started
	for i := range d.bound.Segments {
		if abandoned(m.parts) {
			return errAbandoned
		}
		if err := d.model.Enqueue(i, m.compute); err != nil {
			return fmt.Errorf("%s: %w", segmentName(&d.bound.Segments[i]), err)
		}
		after := now()
		m.times.segments[d.bound.Segments[i].Kind] += after.Sub(before)
		d.spans.Record(segmentKinds[d.bound.Segments[i].Kind], m.number, before, before, after)
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
