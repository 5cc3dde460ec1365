package actors

import (
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// accounts are what a device's time went to: computing steps, and waiting between them, by cause. They belong to the
// device's actor.
type accounts struct {
	idle  *trace.Wait
	why   func(trace.Cause) trace.Cause // refines the cause of an open wait
	timed *timed                        // nil: the device does not say when segments ran
	again bool                          // the device's actor was restarted
}

// open begins the account of a device that has no weights yet.
func (a *accounts) open() { a.idle.Begin(trace.Instant(), a.absent(), trace.Nothing()) }

// absent is the cause of a wait for weights that have not been loaded yet.
func (a *accounts) absent() trace.Cause {
	if a.again {
		return trace.Restarting
	}
	return trace.Loading
}

// leave gives the open wait so far its cause when a model leaves, if that is unknown: no later step of the model will
// tell it.
func (a *accounts) leave() {
	if cause, open := a.idle.Open(); open && cause == trace.Unknown {
		a.idle.Until(trace.Instant(), a.why(cause))
	}
}

// rest notes why the device has nothing to compute, as far as it knows: its actor has handled all its messages.
func (a *accounts) rest(m *deviceMemory) {
	why, none := trace.Unknown, true
	for g := range m.all() {
		none = none && g.leaving
		switch {
		case len(g.queue) > 0:
			why = trace.OtherModel
		case !g.resident && why == trace.Unknown && !g.refused:
			why = a.absent()
		}
	}
	if none {
		why = trace.NoWork
	}
	if cause, open := a.idle.Open(); open && cause == why {
		return
	}
	at := trace.Instant()
	for g := range m.all() {
		if len(g.queue) > 0 {
			a.explain(g.queue[0], at)
		}
	}
	a.idle.Begin(at, why, trace.Nothing())
}

// explain assigns the device's open wait for a step to what delayed that step, if the cause was not known.
func (a *accounts) explain(m *step, at time.Time) {
	if cause, open := a.idle.Open(); open && cause == trace.Unknown {
		m.delays.explain(a.idle, m.times.planned, at)
	}
}

// begin ends the device's wait for a step.
func (a *accounts) begin(m *step) {
	a.idle.Together(func() {
		a.explain(m, m.times.started)
		if _, open := a.idle.Open(); open && a.timed != nil {
			a.timed.begin(m.times.started)
		}
		a.idle.End(m.times.started)
	})
}

// end records a step's span. If the step was the last that the device had, a wait for another one begins.
func (a *accounts) end(g *guest, m *step, last bool) {
	kind := trace.Prefill
	if m.decodes() {
		kind = trace.Decode
	}
	from, to := m.times.started, m.times.computed
	m.times.took = to.Sub(from) - m.times.waited
	if a.timed != nil && len(m.ran) > 0 {
		from, to, m.times.took = a.timed.step(g, m)
	}
	g.stats.spans.Record(kind, trace.OfStep(m.number), soonest(m.times.planned, from), from, to)
	if last {
		a.idle.Together(func() {
			a.idle.Begin(to, trace.Unknown, trace.Nothing())
			a.idle.Until(m.times.computed, trace.Host)
		})
	}
}
