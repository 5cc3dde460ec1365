package actors

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
)

// timed keeps account of a device that reports when segments ran: of the segments, and of the gaps between them. The
// host alone sees only when it gave such a device something to do, and when it heard of the end.
type timed struct {
	idle *trace.Wait
	held *trace.Wait                 // waits of steps here, while the device may have computed what it had
	done time.Time                   // the device's time is accounted for up to here
	last [trace.Causes]time.Duration // waits by cause, summed over all steps so far
}

// begin notes that the device has a step from here on.
func (t *timed) begin(at time.Time) { t.done = latest(t.done, at) }

// step records what the device did for a step that has ended: its segments, and before each what it waited for. It
// returns when the device began and ended the step, and how long it computed in between.
func (t *timed) step(g *guest, m *step) (from, to time.Time, took time.Duration) {
	from = t.done
	segments := g.spec.bound.Segments
	slices.SortStableFunc(m.ran, func(a, b backend.Ran) int { return a.Began.Compare(b.Began) }) // some are the host's
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

// gap accounts for the device's wait before it began r. Until r was submitted, the causes are those for which the step
// waited on the host, or Host; then Uploader, until copies had landed; and at last Launch, for the device itself.
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
