package actors

import (
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
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
