package actors

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
)

// timed keeps account of a device that says itself when segments ran: of these, and of the gaps between them. What the
// host sees of such a device is when it gave it something to do, and when it heard of the end.
type timed struct {
	idle *trace.Wait
	held *trace.Wait                 // what steps waited for here, while the device may have computed what it had
	done time.Time                   // up to when the device's time is known
	last [trace.Causes]time.Duration // waits of all steps so far
}

// begin says that the device's wait for a step is over: it has one from here on.
func (t *timed) begin(at time.Time) { t.done = latest(t.done, at) }

// step writes down what the device did for a step that has ended: its segments, and before each what it waited for. It
// returns from when to when it was at the step, and how long it computed.
func (t *timed) step(g *guest, m *step) (from, to time.Time, took time.Duration) {
	from = t.done
	segments := g.spec.bound.Segments
	slices.SortStableFunc(m.ran, func(a, b backend.Ran) int { return a.Began.Compare(b.Began) }) // some were computed here
	for i := range m.ran {
		r := &m.ran[i]
		s := &segments[r.Segment]
		of := trace.OfSegment(m.number, r.Segment, s.Layer)
		t.gap(r, of)
		began := latest(r.Began, t.done)
		t.done = latest(t.done, r.Ended)
		of.Group = r.Group
		g.stats.spans.Record(segmentKinds[s.Kind], of, began, began, t.done)
		m.times.segments[s.Kind] += r.Ended.Sub(r.Began)
		took += t.done.Sub(began)
	}
	t.held.Forget(t.done)
	waits, _, _ := t.idle.Total()
	for c := range waits {
		m.times.gaps[c] = waits[c] - t.last[c]
	}
	t.last = waits
	return from, t.done, took
}

// gap writes down what the device waited for before it began something: until that was submitted, for what the step
// waited for here, if for anything; from then on for copies, and at last for the device itself.
func (t *timed) gap(r *backend.Ran, of trace.Of) {
	until := func(at time.Time, cause trace.Cause) {
		if at = soonest(at, r.Began); at.After(t.done) {
			t.idle.Over(trace.Stretch{From: t.done, To: at, Cause: cause, Of: of})
			t.done = at
		}
	}
	for _, s := range t.held.Kept() {
		until(soonest(s.From, r.Asked), trace.Host)
		until(soonest(s.To, r.Asked), s.Cause)
	}
	until(r.Asked, trace.Host)
	until(r.Landed, trace.Uploader)
	until(r.Began, trace.Launch)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func soonest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
