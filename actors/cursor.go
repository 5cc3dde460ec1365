package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/place/predict"
)

// cursor is the device's position in the step that it computes: the segment, and the groups that are still to be
// computed. If weights are missing, the device goes on from there when they have come.
// Wide: it is all that the device knows of the step that it is at.
type cursor struct {
	turns   *run.Turns
	cores   *run.Sharer // nil: nothing else computes where steps do
	idle    *trace.Wait
	working *atomic.Pointer[step] // the step to blame if the device panics now

	guest   *guest
	step    *step // nil: no step is being computed
	segment int
	failed  error     // why the step cannot go on
	waits   time.Time // since when the step waits for weights; zero: it does not wait
	lap     time.Time // when what is computed now began

	// The next four are about the segment that the device is at, if its weights are streamed.
	began bool  // left is set
	asked bool  // told is set
	told  bool  // the device has said which experts were chosen
	left  []int // groups that are still to be computed

	route    int          // the route whose margins foreseen gets
	foreseen func([]int8) // hear, bound once
}

// begin goes to the start of a guest's step.
func (c *cursor) begin(g *guest, m *step) {
	if c.foreseen == nil {
		c.foreseen = c.hear
	}
	c.guest, c.step, c.segment, c.failed, c.waits = g, m, 0, nil, time.Time{}
	c.began, c.asked, c.told, c.left = false, false, false, c.left[:0]
}

// nextSegment moves on.
func (c *cursor) nextSegment() {
	c.segment++
	c.began, c.asked, c.told = false, false, false
}

var (
	// errAbandoned ends a step of which nobody wants the result any more.
	errAbandoned = errors.New("step abandoned: its sequences are cancelled")
	// errStale ends a step whose generation is over.
	errStale = errors.New("step of an older generation")
)

// advance computes the step as far as weights are there. If some are missing, it returns nil: the device's actor
// handles its mailbox, and calls again when something has come. A step that has ended already is returned; one that
// goes on beside the actors ends by a message.
func (c *cursor) advance() (over *step) {
	m := c.step
	c.working.Store(m)
	c.endWait()
	waits := false
	c.turns.Compute(func() {
		if c.cores != nil {
			_ = c.cores.Take(context.Background()) // nobody ends that context
			defer c.cores.Give()
		}
		var err error
		if waits, err = c.enqueue(); !waits {
			m.err = err
			c.guest.model.Finish(m.compute, m.ended)
		}
	})
	if waits {
		c.working.CompareAndSwap(m, nil) // if the device panics meanwhile, the step is not to blame
		c.waits = trace.Instant()
		layer := c.guest.spec.bound.Segments[c.segment].Layer
		c.idle.Begin(c.waits, c.lacks(), trace.OfSegment(m.number, c.segment, layer))
		return nil
	}
	c.step = nil
	if m.left() {
		return m
	}
	return nil
}

// drop finishes a step that will not be computed to its end.
func (c *cursor) drop() {
	if m := c.step; m != nil {
		c.step = nil
		c.guest.model.Finish(m.compute, m.ended)
	}
}

// endWait ends the time that the step waited for weights, if it did.
func (c *cursor) endWait() {
	if c.waits.IsZero() {
		return
	}
	at := trace.Instant()
	c.step.times.waited += at.Sub(c.waits)
	c.waits = time.Time{}
	c.idle.End(at)
}

// lacks is the cause of the step's wait: Uploader if it needs only a slot, for groups that the device copies to itself
// from host memory; else Expert or Reader, for weights that are read.
func (c *cursor) lacks() trace.Cause {
	homes := c.guest.spec.plan.Homes
	if !slices.ContainsFunc(c.left, func(g int) bool { return !homes[g].Kept() }) && len(c.left) > 0 {
		return trace.Uploader
	}
	if kind := c.guest.spec.bound.Segments[c.segment].Kind; kind == ir.SegExperts {
		return trace.Expert
	}
	return trace.Reader
}

// enqueue has the device compute the segments that follow, until one has to wait for weights.
func (c *cursor) enqueue() (waits bool, err error) {
	m, g := c.step, c.guest
	segments := g.spec.bound.Segments
	for c.lap = trace.Instant(); c.segment < len(segments); c.nextSegment() {
		switch {
		case c.failed != nil:
			return false, c.failed
		case abandoned(m.parts):
			return false, errAbandoned
		}
		s := &segments[c.segment]
		if c.segment == 0 {
			g.track.step(m)
			if g.weights != nil {
				g.weights.Begin(m.compute.Tokens)
			}
			if err := g.passing.bring(g.model, m); err != nil {
				return false, err
			}
		}
		done := true
		if w := g.weights; w == nil || !w.Streams(c.segment) {
			err = c.run(backend.Work{Segment: c.segment, Whole: true})
		} else {
			done, err = c.stream()
		}
		switch {
		case err != nil:
			return false, fmt.Errorf("%s: %w", segmentName(s), err)
		case !done:
			return true, nil
		}
		if pictured(m.parts) {
			if err := m.show(g.model, g.spec.bound.Program, c.segment); err != nil {
				return false, fmt.Errorf("pictures after %s: %w", segmentName(s), err)
			}
		}
		if err := g.passing.take(g.model, m, c.segment); err != nil {
			return false, err
		}
	}
	return false, nil
}

// run has the device compute a segment, or a part of it. Where that ends a route, residency and tape hear which
// experts are chosen; where it comes before one, they hear which are likely to be. So experts can come while the
// device goes on.
func (c *cursor) run(w backend.Work) error {
	if m, g := c.step, c.guest; w.Ends() {
		if g.weights != nil && g.weights.Chooses(c.segment) {
			m.told.Store(0)
			w.Chosen = m.tell
		}
		if g.track.records(c.segment) {
			w.Chosen = g.track.chosen(c.segment, w.Chosen)
		}
		if c.foresees() {
			w.Foreseen = c.foreseen
		}
	}
	err := c.guest.model.Run(w, c.step.compute)
	c.computed(c.guest.spec.bound.Segments[c.segment].Kind)
	return err
}

// foresees says whether margins of the next route, taken after this segment, are of use: to residency or tape, and for
// a step of so few rows.
func (c *cursor) foresees() (ok bool) {
	w, track := c.guest.weights, c.guest.track
	if w == nil && track == nil || len(c.step.compute.Tokens) > predict.MaxRows {
		return false
	}
	c.route, ok = c.guest.model.Foresees(c.segment)
	return ok && (track != nil || w.Foresees(c.route))
}

// hear passes on the margins of the next route, as the device foresees them after the segment.
func (c *cursor) hear(margins []int8) {
	late := c.guest.spec.bound.Segments[c.segment].Kind == ir.SegExperts
	c.guest.track.foreseen(c.route, late, margins)
	if w := c.guest.weights; w != nil && w.Foresees(c.route) {
		w.Foreseen(c.route, late, margins)
	}
}

// computed adds the time since lap to that of the segment's kind, and reads the clock only once.
func (c *cursor) computed(kind ir.SegmentKind) {
	after, m := trace.Instant(), c.step
	if c.guest.timed { // the device itself reports segments that it computes; others are added here
		if c.guest.spec.untold(c.segment) {
			m.ran = append(m.ran, backend.Ran{Segment: c.segment, Group: -1, Asked: c.lap, Began: c.lap, Ended: after})
		}
		c.lap = after
		return
	}
	m.times.segments[kind] += after.Sub(c.lap)
	segment := c.guest.spec.bound.Segments[c.segment]
	of := trace.OfSegment(m.number, c.segment, segment.Layer)
	c.guest.stats.spans.Record(segmentKinds[kind], of, c.lap, c.lap, after)
	c.lap = after
}

// stream computes what it can of a segment whose weights are streamed, part by part, beginning with groups that are
// there. It first asks for the others, and returns false if the segment has to wait for them.
func (c *cursor) stream() (done bool, err error) {
	w := c.guest.weights
	if !c.began {
		if c.began = c.list(); !c.began {
			return false, nil
		}
	}
	for {
		w.Demand(c.segment, c.left)
		l := w.Lend(c.left)
		if len(l.Groups) == 0 && len(c.left) > 0 {
			w.Settle(l)
			return false, nil
		}
		c.left = slices.DeleteFunc(c.left, func(g int) bool { return slices.Contains(l.Groups, g) })
		last := len(c.left) == 0
		err := c.run(l.Part(c.segment, last))
		if l.Returned() {
			w.Settle(l)
		}
		if err != nil || last {
			return true, err
		}
	}
}

// list sets left to the groups of the segment that the step needs. It returns false if the device has yet to say which
// experts were chosen.
func (c *cursor) list() (known bool) {
	m, w := c.step, c.guest.weights
	dense := w.Dense(c.segment)
	switch {
	case w.Chosen(c.segment):
		if !c.asked { // the second of device and actor to swap sees that the first one has
			c.asked, c.told = true, m.told.Swap(1) == 1
		}
		if !c.told {
			return false
		}
		c.left = w.Choose(c.segment, c.left, m.experts)
	case c.guest.spec.bound.Segments[c.segment].Kind.Ends() && len(m.compute.Wanted) == 0:
		w.Pass(dense)
		c.left = c.left[:0]
	default:
		c.left = append(c.left[:0], dense...)
	}
	return true
}

// landed takes in that a group of a guest has come, or failed to. If the step waits for that group, its way explains
// the wait; if it failed, so does the step.
func (c *cursor) landed(g *guest, m *tiers.Landed) {
	if c.step == nil || c.guest != g || !slices.Contains(c.left, m.Group()) {
		return
	}
	if !c.waits.IsZero() && c.lacks() == trace.Reader { // a wait for experts keeps its cause: they were not foreseen
		m.Way.Explain(c.idle, trace.Instant())
	}
	if m.Err != nil && !m.Forsaken() && c.began {
		c.failed = fmt.Errorf("%s: %w", segmentName(&g.spec.bound.Segments[c.segment]), m.Err)
	}
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
