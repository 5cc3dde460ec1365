package actors

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

// A device that has nothing to compute seldom knows why the next step is not there. The scheduler does: it tells with
// the step what held it up, and the device, which knows from when to when it was idle, writes the causes down.

// delays is what held a step up until it was planned.
type delays struct {
	sampled time.Time // when the step before was sampled; zero: there was none, or it failed
	lacks   [8]lack
	count   int
}

// lack is why there was no step to plan, from a time on.
type lack struct {
	cause trace.Cause
	since time.Time
}

// last is the lack at hand, Unknown if there is none.
func (d *delays) last() trace.Cause {
	if d.count == 0 {
		return trace.Unknown
	}
	return d.lacks[d.count-1].cause
}

// add notes a lack. When there were too many to tell apart, the last one stands for those that follow.
func (d *delays) add(cause trace.Cause, since time.Time) {
	if d.count < len(d.lacks) {
		d.lacks[d.count] = lack{cause, since}
		d.count++
	}
}

// explain says what the open wait was for until the device has the step, which was planned and began at these times.
func (d *delays) explain(w *trace.Wait, planned, began time.Time) {
	w.Until(d.sampled, trace.Sampler)
	cause := trace.Scheduler
	for _, l := range d.lacks[:d.count] {
		w.Until(l.since, cause)
		cause = l.cause
	}
	if cause != trace.Scheduler {
		w.Until(planned, cause)
	}
	w.Until(began, trace.Scheduler)
}

// came says where a group was held up that the step waits for. Of experts it is enough that they were not foreseen.
func (d *device) came(g *guest, m *tiers.Landed) {
	at := &d.at
	if at.step == nil || at.waits.IsZero() || at.step.guest != g || !slices.Contains(at.left, m.Group()) {
		return
	}
	if d.lacks() == trace.Reader {
		m.Way.Explain(d.idle, now())
	}
}

// lack is why the state has no step to plan though none is in flight.
func (s *scheduler) lack() trace.Cause {
	cause := trace.NoWork
	for _, q := range s.state.Seqs() {
		switch {
		case !s.state.Live(q):
		case s.state.Starved(q):
			cause = trace.Credit
		default:
			return trace.KV
		}
	}
	return cause
}

// lacks notes why there is no step to plan from now on.
func (s *scheduler) lacks(cause trace.Cause) {
	if s.delays.last() != cause {
		s.delays.add(cause, now())
		s.stats.lacking.Store(uint32(cause))
	}
}

// rest says why the device has nothing to compute, where it knows: its actor has handled what there was.
func (d *device) rest() {
	if d.flying > 0 {
		return
	}
	why := trace.Unknown
	for _, g := range d.kept.guests {
		switch {
		case len(g.queue) > 0:
			why = trace.OtherModel
		case !g.resident:
			why = d.absent()
		}
	}
	if cause, open := d.idle.Open(); open && cause == why {
		return
	}
	at := now()
	for _, g := range d.kept.guests {
		if len(g.queue) > 0 {
			d.explain(g.queue[0], at)
		}
	}
	d.idle.Begin(at, why, trace.Nothing())
}

// absent is why weights are not there.
func (d *device) absent() trace.Cause {
	if d.incarnation > 0 {
		return trace.Restarting
	}
	return trace.Loading
}

// explain says what the device waited for until it has a step, if it did not know.
func (d *device) explain(m *step, at time.Time) {
	if cause, open := d.idle.Open(); open && cause == trace.Unknown {
		m.delays.explain(d.idle, m.times.planned, at)
	}
}

// began ends the device's wait for a step.
func (d *device) began(m *step) {
	d.explain(m, m.times.started)
	d.idle.End(m.times.started)
}

// ended writes a step's span, and begins to wait for another.
func (d *device) ended(m *step) {
	kind := trace.Prefill
	if m.decodes() {
		kind = trace.Decode
	}
	m.guest.stats.of(m).segments.Record(kind, trace.OfStep(m.number), m.times.planned, m.times.started, m.times.computed)
	if d.flying == 0 {
		d.idle.Begin(m.times.computed, trace.Unknown, trace.Nothing())
	}
}

// decodes says whether every sequence of the step has one row.
func (m *step) decodes() bool { return len(m.compute.Tokens) == len(m.compute.Spans) }

// DeviceTime says what the device did with its time so far: what it did not wait it computed. The wait at hand is in
// it.
func (h *House) DeviceTime() stall.Time {
	totals, since, cause := h.idle.Total()
	at := now().Sub(h.system.Spans().Origin())
	t := stall.Time{Idle: totals}
	if since >= 0 {
		t.Idle[h.why(cause)] += max(at-since, 0)
	}
	t.Computing = max(at-t.Waited(), 0)
	h.told.Lock()
	defer h.told.Unlock()
	last := &h.told.Time
	for c := range t.Idle { // what an open wait was for is settled only at its end, and sums never sink
		last.Idle[c] = max(last.Idle[c], t.Idle[c])
	}
	last.Computing = max(last.Computing, t.Computing)
	return *last
}

// why refines the cause of an open wait by what the schedulers lack: the one that lacks least.
func (h *House) why(cause trace.Cause) trace.Cause {
	if cause != trace.Unknown {
		return cause
	}
	lacking := trace.NoWork
	for _, e := range h.engines {
		switch c := trace.Cause(e.stats.lacking.Load()); c {
		case trace.Unknown: // a step is on its way through sampler and scheduler
			return trace.Scheduler
		case trace.NoWork:
		default:
			lacking = c
		}
	}
	return lacking
}
