package actors

import (
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// A device without work seldom knows why the next step is not there. The scheduler does: it sends with each step what
// delayed it, and the device, which knows from when to when it was idle, assigns its idle time to these causes.

// delays is what delayed a step until it was planned.
type delays struct {
	sampled time.Time // when the step before was sampled; zero: there was none, or it failed
	lacks   [8]lack
	count   int
}

// lack is the cause for which there was no step to plan, and when that began.
type lack struct {
	cause trace.Cause
	since time.Time
}

// begin begins anew after a step that was sampled.
func (d *delays) begin(sampled time.Time) { d.sampled, d.count = sampled, 0 }

// move hands to a step what delayed it, without the lacks that there were not, and begins anew.
func (d *delays) move(to *delays) {
	to.sampled, to.count = d.sampled, copy(to.lacks[:], d.lacks[:d.count])
	d.begin(time.Time{})
}

// last is the cause of the latest lack; Unknown: there was none.
func (d *delays) last() trace.Cause {
	if d.count == 0 {
		return trace.Unknown
	}
	return d.lacks[d.count-1].cause
}

// add notes a lack. If there are too many to keep, the last one that was kept stands for those that follow.
func (d *delays) add(cause trace.Cause, since time.Time) {
	if d.count < len(d.lacks) {
		d.lacks[d.count] = lack{cause, since}
		d.count++
	}
}

// explain splits the device's open wait by cause, up to began. planned is when the scheduler planned the step, began
// when the device began it.
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
