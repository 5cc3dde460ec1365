package actors

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
)

// stepRing, to a scheduler before flushed: the steps of its model, as many as may be in flight.
type stepRing struct {
	gen   uint64
	steps []*step
}

func (*stepRing) Late() {}

// guestEdges are the device's to one of its models.
type guestEdges struct {
	scheduler run.Place
	restarted run.Edge[restarted]
	step      run.Edge[step]
	ring      run.Edge[stepRing]
	aside     run.Edge[aside] // the device's to itself
	ways      *tiers.Ways
}

// guestNews are what a device calls for what becomes of a guest: from its actor, without waiting.
type guestNews struct {
	ready    func()               // its weights are there
	fail     func(error)          // it cannot be computed
	barred   func(error)          // likewise, and is not to come back soon
	measured func(backend.Memory) // what it takes
	gone     func()               // nothing of it is left
}

// guest is a model on a device. What changes belongs to the device's actor.
// Wide: the first half is given by the house, the other is the model on the device.
type guest struct {
	index    int // among the device's
	spec     *spec
	tape     *tape
	out      guestEdges
	tell     guestNews
	stats    *stats // whose tracks have the spans of its segments
	progress *tiers.Progress
	caches   *cacheMemory

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
	work     *aside  // that goes on beside steps: it is compiled or closed
	leaving  bool
	refused  bool        // no step of it is computed any more
	hung     []time.Time // when the device did in a step of it, in lostWindow
}

// aside, to the device from a goroutine of its own: the work on a guest that it did beside steps has ended.
type aside struct {
	guest   *guest
	closing bool          // the model was closed; else it was compiled
	over    chan struct{} // closed before this is sent
	model   backend.Model
	err     error
}

func (*aside) Late() {}

// beside does long work on the guest on a goroutine of its own, one at a time.
func (g *guest) beside(work *aside, do func() error) {
	work.guest, work.over = g, make(chan struct{})
	g.work = work
	go func() {
		work.err = guarded(do)
		close(work.over)
		g.out.aside.Send(work)
	}()
}

// guarded turns a panic into an error, where no supervisor sees it.
func guarded(do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	return do()
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
func (g *guest) furnish(late lateEdges) {
	g.resident, g.steps = false, nil
	g.cargo, g.weights = nil, nil
	if g.spec.layout.InPlace() == nil {
		source := tiers.Source{File: g.spec.file, Bound: g.spec.bound, Plan: &g.spec.plan}
		g.cargo = tiers.NewCargo(source, g.model, g.progress)
		if g.spec.streams() {
			g.weights = tiers.NewResidency(g.cargo, g.out.ways.Want.Send, g.out.ways.Returned.Send)
			g.weights.CountTo(&g.stats.streamed)
		}
	}
	for _, s := range g.model.Steps() {
		g.steps = append(g.steps, newStep(g.index, g.spec.limits, s, late))
	}
}

// loaded hears that all is there that has slots of its own. The rest can begin to come.
func (g *guest) loaded() {
	g.resident = true
	if g.weights != nil {
		g.weights.Fill()
	}
}

// leave takes the model out. What it returns closes it, once no read writes to its memory any more.
func (g *guest) leave() (closes func() error) {
	model, cargo, caches := g.model, g.cargo, g.caches
	g.model, g.steps, g.cargo, g.weights, g.resident = nil, nil, nil, nil, false
	return func() error {
		if model == nil {
			return nil
		}
		caches.close()
		if cargo != nil {
			cargo.Close()
		}
		ring := model.Steps()
		err := model.Close()
		for _, s := range ring { // they may still be on their way to the sampler, which has no turn now
			s.Logits = nil
		}
		return err
	}
}

// answer tells the scheduler that its generation has begun, when the weights are there and nothing older runs.
func (g *guest) answer() {
	if g.owed == nil || !g.resident || len(g.flying) > 0 {
		return
	}
	g.out.ring.Send(&stepRing{gen: g.gen, steps: g.steps})
	g.owed.Done()
	g.owed = nil
}
