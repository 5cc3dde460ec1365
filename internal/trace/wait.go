package trace

import (
	"slices"
	"sync/atomic"
	"time"
)

// Wait accounts for the time in which a device has nothing to compute: one wait at a time, each piece of it a span of
// kind Idle with its cause. The device's actor writes it, without a lock or an allocation; any goroutine may read it.
type Wait struct {
	track  *Track
	totals [Causes]atomic.Int64 // nanoseconds
	open   bool
	since  time.Time
	cause  Cause
	of     Of

	aside bool // it writes nothing down but into kept
	kept  []Stretch

	changing bool          // by change
	turn     atomic.Uint64 // odd while what readers see of the open wait is written
	begun    atomic.Int64  // from the ring's origin; -1: none is open
	why      atomic.Uint32
}

// Waits returns an account of waits whose spans belong to a track.
func (t *Track) Waits() *Wait {
	w := &Wait{track: t}
	w.begun.Store(-1)
	return w
}

// Stretch is a wait that has ended.
type Stretch struct {
	From, To time.Time
	Cause    Cause
	Of       Of
}

// Aside returns an account that belongs to no track. It keeps its waits until they are forgotten, for a caller that
// has yet to find out what a device did meanwhile.
func Aside() *Wait {
	w := New(1, time.Time{}).Track("").Waits()
	w.aside = true
	return w
}

// Kept returns the waits of an account aside that were not forgotten, in order.
func (w *Wait) Kept() []Stretch { return w.kept }

// Forget drops kept waits that ended by a time.
func (w *Wait) Forget(before time.Time) {
	w.kept = slices.DeleteFunc(w.kept, func(s Stretch) bool { return !s.To.After(before) })
}

// Over records a wait that has ended, beside the open one.
func (w *Wait) Over(s Stretch) {
	if s.To.After(s.From) {
		w.change(func() { w.write(s) })
	}
}

// Name returns the name of the track.
func (w *Wait) Name() string { return w.track.name }

// Begin begins a wait with its cause and subject. An open wait ends then.
func (w *Wait) Begin(at time.Time, cause Cause, of Of) {
	w.change(func() {
		w.close(at, w.cause)
		w.open, w.since, w.cause, w.of = true, at, cause, of
	})
}

// Until records the cause of the open wait up to a time, if that is known only now. The wait goes on.
func (w *Wait) Until(at time.Time, cause Cause) {
	if w.open && at.After(w.since) {
		w.change(func() {
			w.close(at, cause)
			w.since = at
		})
	}
}

// End ends the open wait, if there is one: the device computes again.
func (w *Wait) End(at time.Time) {
	if w.open {
		w.change(func() {
			w.close(at, w.cause)
			w.open = false
		})
	}
}

// Open reports whether the device waits, and why.
func (w *Wait) Open() (Cause, bool) { return w.cause, w.open }

// close records the open wait up to a time.
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

// Together runs do, which calls methods of w. Readers see all that these change at once, and it costs no more than one.
func (w *Wait) Together(do func()) { w.change(do) }

// change runs do so that readers see its changes all at once, and those of a change within which it is called.
func (w *Wait) change(do func()) {
	if w.changing {
		do()
		return
	}
	w.changing = true
	w.turn.Add(1)
	do()
	begun := int64(-1)
	if w.open {
		begun = int64(w.since.Sub(w.track.ring.origin))
	}
	w.begun.Store(begun)
	w.why.Store(uint32(w.cause))
	w.turn.Add(1)
	w.changing = false
}

// Total returns the time waited so far by cause, when the open wait began, from the ring's origin, and its cause.
// since is negative if no wait is open. The open wait is not in the sums.
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
