package actors

import (
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
)

// stepRing, to a scheduler before flushed: the steps of its model, as many as may be in flight.
type stepRing struct {
	gen    uint64
	steps  []*step
	shared bool // the device is other models' too
}

func (*stepRing) Late() {}

// guestEdges are the device's to one of its models.
type guestEdges struct {
	scheduler run.Place
	restarted run.Edge[restarted]
	step      run.Edge[step]
	ring      run.Edge[stepRing]
}

// guest is a model on a device. What changes belongs to the device's actor.
type guest struct {
	index    int // among the device's
	spec     *spec
	tape     *tape
	out      guestEdges
	stats    *stats // whose tracks have the spans of its segments
	progress *tiers.Progress

	model    backend.Model
	timed    bool             // the device says itself when segments ran
	copies   *trace.Track     // of what the device copies to itself; nil: it does nothing beside the program
	computes *trace.Track     // of what it computes with that, as the host sees it
	cargo    *tiers.Cargo     // what is brought to it; nil: its weights are in place
	weights  *tiers.Residency // of those that share slots; nil: none do
	steps    []*step          // its ring
	resident bool             // all weights are there
	gen      uint64           // of its scheduler
	owed     *run.Flush
	queue    []*step
	flying   []*step // that the device works on, the oldest first
}

// layout is what the device compiles, for weights that come in slabs if they are not in place. What it does beside the
// program goes to tracks of its own.
func (g *guest) layout(slabs []byte) backend.Config {
	layout := g.spec.layout
	if layout.InPlace() == nil {
		layout.Weights = backend.Uploaded{Tables: layout.Uploaded().Tables, Slabs: slabs}
	}
	if g.copies == nil && !g.timed {
		return layout
	}
	layout.Detail = g.stats.spans.Tapped
	layout.Ran = func(r backend.Ran) {
		if g.timed && !r.Copied {
			for _, m := range g.steps {
				if m.compute == r.Step {
					m.ran = append(m.ran, r)
				}
			}
			return
		}
		of := &g.spec.plan.Homes[r.Group].Group
		where := trace.Of{Segment: of.Segment, Layer: g.spec.bound.Segments[of.Segment].Layer, Group: r.Group}
		if r.Copied {
			g.copies.Record(trace.Weights, where, r.Asked, r.Began, r.Ended)
			return
		}
		g.computes.Record(segmentKinds[g.spec.bound.Segments[of.Segment].Kind], where, r.Asked, r.Began, r.Ended)
	}
	return layout
}

// furnish makes a guest whose model was just compiled ready for weights.
func (g *guest) furnish(w *tiers.Wiring, late lateEdges) {
	g.resident, g.gen, g.owed, g.queue, g.flying, g.steps = false, 0, nil, nil, nil, nil
	g.cargo, g.weights = nil, nil
	if g.spec.layout.InPlace() == nil {
		source := tiers.Source{File: g.spec.file, Bound: g.spec.bound, Plan: &g.spec.plan}
		g.cargo = tiers.NewCargo(source, g.model, g.progress)
		if g.spec.streams() {
			g.weights = tiers.NewResidency(g.cargo, w.Want.Send, w.Returned.Send)
			g.weights.CountTo(&g.stats.streamed)
		}
	}
	for _, s := range g.model.Steps() {
		g.steps = append(g.steps, newStep(g.index, g.spec.limits.Seqs, s, late))
	}
}

// loaded hears that all is there that has slots of its own. The rest can begin to come.
func (g *guest) loaded() {
	g.resident = true
	if g.weights != nil {
		g.weights.Fill()
	}
}

// leave closes the model, once no read writes to its memory any more.
func (g *guest) leave() error {
	if g.model == nil {
		return nil
	}
	if g.cargo != nil {
		g.cargo.Close()
	}
	ring := g.model.Steps()
	err := g.model.Close()
	for _, s := range ring { // they may still be on their way to the sampler, which has no turn now
		s.Logits = nil
	}
	g.model, g.steps, g.cargo, g.weights = nil, nil, nil, nil
	return err
}

// answer tells the scheduler that its generation has begun, when the weights are there and nothing older runs. It is
// alone on the device, or not.
func (g *guest) answer(alone bool) {
	if g.owed == nil || !g.resident || len(g.flying) > 0 {
		return
	}
	g.out.ring.Send(&stepRing{gen: g.gen, steps: g.steps, shared: !alone})
	g.owed.Done()
	g.owed = nil
}
