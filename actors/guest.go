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

// stepRing, from the device to a scheduler before Flushed, brings the steps of its model, as many as may be in flight.
type stepRing struct {
	gen   uint64
	steps []*step
}

func (*stepRing) Late() {}

// guestEdges are the device's edges to the actors of one of its models.
type guestEdges struct {
	scheduler run.Place
	restarted run.Edge[restarted]
	step      run.Edge[step]
	ring      run.Edge[stepRing]
	aside     run.Edge[aside] // the device's to itself
	ways      *tiers.Ways
}

// guestNews are the functions that the device's actor calls to report on a guest. They do not block.
type guestNews struct {
	ready    func()               // its weights are there
	fail     func(error)          // it cannot be computed
	barred   func(error)          // likewise, and it is not to be loaded again soon
	measured func(backend.Memory) // the memory that it takes
	gone     func()               // nothing of it is left
}

// guest is one model on a device. Fields that change belong to the device's actor.
// Wide: the first half is given by the house, the other is the model on the device.
type guest struct {
	index    int // its index in deviceMemory.guests
	spec     *spec
	track    *track
	out      guestEdges
	tell     guestNews
	stats    *stats // its track gets the spans of the guest's segments
	progress *tiers.Progress
	caches   *cacheMemory
	passing  *passing // of hidden states; nil: it has no head, nor is one

	model    backend.Model
	timed    bool             // the device itself reports when segments ran
	copies   *trace.Track     // spans of its copies from host memory; nil: it copies nothing beside the program
	computes *trace.Track     // spans of what it computes with copied groups, as the host sees it
	cargo    *tiers.Cargo     // weights that are brought to it; nil: its weights are in place
	weights  *tiers.Residency // of groups that share slots; nil: none do
	steps    []*step          // its ring of steps
	resident bool             // all weights are there that are brought once
	gen      uint64           // of its scheduler
	owed     *run.Flush       // Flush to be answered; see answer
	queue    []*step          // steps that wait for their turn
	flying   []*step          // steps that the device works on, the oldest first
	work     *aside           // compiling or closing it, which goes on beside steps; nil: nothing does
	leaving  bool
	refused  bool        // no step of it is computed any more, after an error
	hung     []time.Time // times, within lostWindow, at which a step of it hung the device
}

// aside, to the device from a goroutine of its own, says that compiling or closing a guest's model beside steps has
// ended.
type aside struct {
	guest   *guest
	closing bool          // the model was closed; else it was compiled
	over    chan struct{} // closed before this is sent
	model   backend.Model
	err     error
}

func (*aside) Late() {}

// beside compiles or closes a guest's model on a goroutine of its own, one such work at a time.
func (g *guest) beside(work *aside, do func() error) {
	work.guest, work.over = g, make(chan struct{})
	g.work = work
	go func() {
		work.err = guarded(do)
		close(work.over)
		g.out.aside.Send(work)
	}()
}

// guarded returns a panic as an error: no supervisor would see it on this goroutine.
func guarded(do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	return do()
}

// layout is the configuration with which the device compiles the model. slabs is the staging memory through which
// weights come, if they are not in place. What the device does beside the program is recorded on tracks of its own.
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

// furnish makes what a model that was just compiled needs to get its weights: its cargo and its residency.
func (g *guest) furnish() {
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
}

// loaded notes that all weights are there that are brought once. Groups that share slots can begin to come.
func (g *guest) loaded() {
	g.resident = true
	if g.weights != nil {
		g.weights.Fill()
	}
}

// leave takes the model from the guest, and returns the function that closes it: that waits until no read writes to
// its memory any more.
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
		for _, s := range ring { // steps may still be on their way to the sampler, which has no turn now
			s.Logits = nil
		}
		return err
	}
}

// answer tells the scheduler that its generation has begun, once the weights are there and no older step runs. It gets
// steps of its own: an older one may still be in the sampler's mailbox, and would be taken for a new one there.
func (g *guest) answer(late lateEdges) {
	if g.owed == nil || !g.resident || len(g.flying) > 0 {
		return
	}
	g.steps = nil
	for _, s := range g.model.Steps() {
		g.steps = append(g.steps, newStep(g.index, g.spec.limits, s, late))
	}
	g.out.ring.Send(&stepRing{gen: g.gen, steps: g.steps})
	g.owed.Done()
	g.owed = nil
}
