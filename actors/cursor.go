package actors

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
)

// cursor is where the device is in the step that it is at. It goes on from there when what it lacked has come.
type cursor struct {
	step    *step // nil: it is at none
	segment int
	failed  error     // why the step cannot go on
	waits   time.Time // since when; zero: it does not
	lap     time.Time // when what is computed now began

	// Of a segment whose weights are streamed.
	began bool  // left is known
	asked bool  // the device was asked which experts were chosen
	told  bool  // it has said so
	left  []int // groups that are still to be computed
}

func (c *cursor) begin(m *step) { *c = cursor{step: m, left: c.left[:0]} }

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

// resume goes on with the step that waits here, if one does.
func (d *device) resume() {
	if d.at.step != nil {
		d.advance()
	}
}

// advance takes the step as far as it gets with the weights that are there. If that is not its end, the device returns
// to its mailbox, and is called again when something has come.
func (d *device) advance() {
	m, g := d.at.step, d.at.step.guest
	d.kept.working.Store(m)
	d.endWait()
	waits := false
	d.turns.Compute(func() {
		var err error
		if waits, err = d.enqueue(); !waits {
			m.err = err
			g.model.Finish(m.compute, m.ended)
		}
	})
	if waits {
		d.kept.working.CompareAndSwap(m, nil) // whatever kills the device meanwhile, it is not the step
		d.at.waits = now()
		layer := g.spec.bound.Segments[d.at.segment].Layer
		d.idle.Begin(d.at.waits, d.lacks(), trace.OfSegment(m.number, d.at.segment, layer))
		return
	}
	d.at.step = nil
	if m.left() {
		d.over(m)
	}
}

// endWait ends the time that the step waited for weights, if it did.
func (d *device) endWait() {
	if d.at.waits.IsZero() {
		return
	}
	at := now()
	d.at.step.times.waited += at.Sub(d.at.waits)
	d.at.waits = time.Time{}
	d.idle.End(at)
}

// lacks is what the step waits for.
func (d *device) lacks() trace.Cause {
	if kind := d.at.step.guest.spec.bound.Segments[d.at.segment].Kind; kind == ir.SegExperts {
		return trace.Expert
	}
	return trace.Reader
}

// enqueue has the device compute the segments that follow, until one has to wait for weights.
func (d *device) enqueue() (waits bool, err error) {
	at := &d.at
	m := at.step
	segments := m.guest.spec.bound.Segments
	for at.lap = now(); at.segment < len(segments); at.nextSegment() {
		switch {
		case at.failed != nil:
			return false, at.failed
		case abandoned(m.parts):
			return false, errAbandoned
		}
		s := &segments[at.segment]
		if at.segment == 0 {
			m.guest.spec.tape.step(m)
			if w := m.guest.weights; w != nil {
				w.Begin(m.compute.Tokens)
			}
		}
		done := true
		if w := m.guest.weights; w == nil || !w.Streams(at.segment) {
			err = m.guest.model.Enqueue(at.segment, m.compute)
			at.computed(s.Kind)
		} else {
			done, err = d.stream()
		}
		if err == nil && done {
			err = errors.Join(m.guest.spec.tape.routed(at.segment, m), d.foresee())
		}
		switch {
		case err != nil:
			return false, fmt.Errorf("%s: %w", segmentName(s), err)
		case !done:
			return true, nil
		}
	}
	return false, nil
}

// computed keeps account of the time by kind of segment: one look at the clock for each.
func (c *cursor) computed(kind ir.SegmentKind) {
	after, m := now(), c.step
	m.times.segments[kind] += after.Sub(c.lap)
	segment := m.guest.spec.bound.Segments[c.segment]
	of := trace.OfSegment(m.number, c.segment, segment.Layer)
	m.guest.stats.of(m).segments.Record(segmentKinds[kind], of, c.lap, c.lap, after)
	c.lap = after
}

// stream computes what it can of a segment whose weights are streamed: part by part, those groups first that are there.
// It asks for the others before, and returns false if they have to come first.
func (d *device) stream() (done bool, err error) {
	at := &d.at
	m, w := at.step, at.step.guest.weights
	if !at.began {
		if at.began, err = d.list(); err != nil || !at.began {
			return false, err
		}
	}
	for {
		w.Demand(at.segment, at.left)
		l := w.Lend(at.left)
		if len(l.Groups) == 0 && len(at.left) > 0 {
			w.Settle(l)
			return false, nil
		}
		at.left = slices.DeleteFunc(at.left, func(g int) bool { return slices.Contains(l.Groups, g) })
		last := len(at.left) == 0
		err := m.guest.model.Part(l.Part(at.segment, last), m.compute)
		at.computed(m.guest.spec.bound.Segments[at.segment].Kind)
		if l.Returned() {
			w.Settle(l)
		}
		if err != nil || last {
			return true, err
		}
	}
}

// list finds out which groups the step needs of a segment. It returns false if the device has yet to say so.
func (d *device) list() (known bool, err error) {
	at := &d.at
	m, w := at.step, at.step.guest.weights
	dense := w.Dense(at.segment)
	switch route, experts := w.Route(at.segment); {
	case experts:
		if !at.asked {
			at.asked = true
			if err := d.ask(route); err != nil {
				return false, err
			}
		}
		if !at.told {
			return false, nil
		}
		at.left = w.Choose(at.segment, at.left, m.experts)
	case m.guest.spec.bound.Segments[at.segment].Kind.Ends() && len(m.compute.Wanted) == 0:
		w.Pass(dense)
		at.left = at.left[:0]
	default:
		at.left = append(at.left[:0], dense...)
	}
	return true, nil
}

// ask asks the device which experts the rows of the step go to. Where it says so later, a message comes.
func (d *device) ask(route int) error {
	at := &d.at
	m := at.step
	m.told.Store(0)
	err := m.guest.model.Chosen(route, m.compute, m.tell)
	if err == nil && m.told.Swap(1) == 1 {
		at.told = true
	}
	return err
}

// landed hears that the way of a group has ended.
func (d *device) landed(m *tiers.Landed) {
	g := d.carrying(m.Of())
	if g == nil || g.weights == nil {
		return // of a model that was closed
	}
	g.weights.Landed(m)
	d.came(g, m)
	if m.Err != nil && !m.Forsaken() {
		d.log.Error().Err(m.Err).Msg("weights cannot be read")
		if at := &d.at; at.step != nil && at.step.guest == g && at.began && slices.Contains(at.left, m.Group()) {
			at.failed = fmt.Errorf("%s: %w", segmentName(&g.spec.bound.Segments[at.segment]), m.Err)
		}
	}
	d.resume()
}

// returned hears that the device has read what it had on loan.
func (d *device) returned(m *tiers.Returned) {
	for _, g := range d.kept.guests {
		if g.weights == m.Of {
			m.Of.Settle(m.Loan)
		}
	}
	d.resume()
}

func abandoned(parts []batch.Part) bool {
	for _, p := range parts {
		if !p.Seq.Owner.(*sequence).cancelled.Load() {
			return false
		}
	}
	return true
}
