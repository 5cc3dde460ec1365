package trace

import (
	"sync/atomic"
	"time"
)

// Wait keeps account of the time in which a device has nothing to compute: one wait at a time, each piece of it a span
// of kind Idle with its cause. The device's actor writes it, without a lock or an allocation; anybody may read it.
type Wait struct {
	track  *Track
	totals [Causes]atomic.Int64 // nanoseconds
	open   bool
	since  time.Time
	cause  Cause
	of     Of

	turn  atomic.Uint64 // odd while what readers see of the open wait is written
	begun atomic.Int64  // from the ring's origin; -1: none is open
	why   atomic.Uint32
}

// Wait returns an account of waits whose spans belong to a track.
func (t *Track) Waits() *Wait {
	w := &Wait{track: t}
	w.begun.Store(-1)
	return w
}

// Name is that of the track.
func (w *Wait) Name() string { return w.track.name }

// Begin says that the device is idle from here, because. A wait that is open ends there.
func (w *Wait) Begin(at time.Time, cause Cause, of Of) {
	w.change(func() {
		w.close(at, w.cause)
		w.open, w.since, w.cause, w.of = true, at, cause, of
	})
}

// Until says what the open wait was for up to here, where that is known only now. It goes on.
func (w *Wait) Until(at time.Time, cause Cause) {
	if w.open && at.After(w.since) {
		w.change(func() {
			w.close(at, cause)
			w.since = at
		})
	}
}

// End says that the device goes on now. If it did not wait nothing happens.
func (w *Wait) End(at time.Time) {
	if w.open {
		w.change(func() {
			w.close(at, w.cause)
			w.open = false
		})
	}
}

// Open returns whether the device waits, and why.
func (w *Wait) Open() (Cause, bool) { return w.cause, w.open }

// close writes down what was waited for up to here.
func (w *Wait) close(at time.Time, cause Cause) {
	if w.open && at.After(w.since) {
		w.track.record(Idle, cause, w.of, w.since, w.since, at)
		w.totals[cause].Add(int64(at.Sub(w.since)))
	}
}

// change makes a change that readers see whole.
func (w *Wait) change(do func()) {
	w.turn.Add(1)
	do()
	begun := int64(-1)
	if w.open {
		begun = int64(w.since.Sub(w.track.ring.origin))
	}
	w.begun.Store(begun)
	w.why.Store(uint32(w.cause))
	w.turn.Add(1)
}

// Total returns for how long the device waited so far because of each cause, and since when it waits now and why:
// since is less than 0 if it does not. What it waits now is not in the sums.
func (w *Wait) Total() (totals [Causes]time.Duration, since time.Duration, cause Cause) {
	for {
		turn := w.turn.Load()
		for c := range totals {
			totals[c] = time.Duration(w.totals[c].Load())
		}
		since, cause = time.Duration(w.begun.Load()), Cause(w.why.Load())
		if turn&1 == 0 && w.turn.Load() == turn {
			return totals, since, cause
		}
	}
}
