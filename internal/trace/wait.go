package trace

import (
	"slices"
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

	aside bool // it writes nothing down but into kept
	kept  []Stretch

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

// Stretch is a wait that is over.
type Stretch struct {
	From, To time.Time
	Cause    Cause
	Of       Of
}

// Aside returns an account that belongs to no track: it keeps its waits until they are taken, for somebody who has yet
// to find out what a device did meanwhile.
func Aside() *Wait {
	w := New(1, time.Time{}).Track("").Waits()
	w.aside = true
	return w
}

// Kept are the waits of an account aside that were not forgotten, in order.
func (w *Wait) Kept() []Stretch { return w.kept }

// Forget lets go what ended before.
func (w *Wait) Forget(before time.Time) {
	w.kept = slices.DeleteFunc(w.kept, func(s Stretch) bool { return !s.To.After(before) })
}

// Over writes down a wait that is over, beside the open one.
func (w *Wait) Over(s Stretch) {
	if s.To.After(s.From) {
		w.change(func() { w.write(s) })
	}
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
		w.write(Stretch{w.since, at, cause, w.of})
	}
}

func (w *Wait) write(s Stretch) {
	if w.aside {
		w.kept = append(w.kept, s)
		return
	}
	w.track.record(Idle, s.Cause, s.Of, s.From, s.From, s.To)
	w.totals[s.Cause].Add(int64(s.To.Sub(s.From)))
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
