// Package trace keeps the last spans of a process in a fixed ring: what an actor handled, a device computed or a disk
// read, for how long, and how long that had waited before.
//
// It is always on: to record a span takes no lock, allocates nothing and never waits. It knows no actor and no model;
// what to do with spans, and how to write them down, is its readers' business.
package trace

import (
	"slices"
	"sync/atomic"
	"time"
)

// Ring holds the last spans of all its tracks. Any goroutine may write or read.
type Ring struct {
	origin time.Time
	next   atomic.Uint64
	lost   atomic.Uint64
	taps   atomic.Int32 // that are open
	cells  []cell
}

// cell holds span n of the ring when its turn is 2n+2. While it is written the turn is odd.
type cell struct {
	turn  atomic.Uint64
	track atomic.Pointer[Track]
	what  atomic.Uint64 // see pack
	where atomic.Uint64
	at    atomic.Int64
	wait  atomic.Int64
	work  atomic.Int64
}

// New returns a ring of so many spans, whose times count from origin.
func New(size int, origin time.Time) *Ring { return &Ring{origin: origin, cells: make([]cell, size)} }

// Origin is the time from which spans count.
func (r *Ring) Origin() time.Time { return r.origin }

// Lost returns how many spans were not kept because the ring went round while one was being written.
func (r *Ring) Lost() uint64 { return r.lost.Load() }

// Tapped says whether somebody takes spans as they come, who may want them to be as exact as they can be.
func (r *Ring) Tapped() bool { return r.taps.Load() > 0 }

// Tapped is Ring.Tapped.
func (t *Track) Tapped() bool { return t.ring.Tapped() }

// Track is one who works: it writes spans, and knows the sums of all that it ever wrote.
type Track struct {
	ring  *Ring
	name  string
	count atomic.Uint64
	wait  atomic.Int64        // nanoseconds
	work  [kinds]atomic.Int64 // nanoseconds, by kind
}

// Track returns a new track of the ring.
func (r *Ring) Track(name string) *Track { return &Track{ring: r, name: name} }

// Record writes a span.
func (t *Track) Record(kind Kind, of Of, asked, began, ended time.Time) {
	t.record(kind, Unknown, of, asked, began, ended)
}

func (t *Track) record(kind Kind, cause Cause, of Of, asked, began, ended time.Time) {
	wait, work := int64(began.Sub(asked)), int64(ended.Sub(began))
	t.count.Add(1)
	t.wait.Add(wait)
	t.work[kind].Add(work)
	r := t.ring
	n := r.next.Add(1) - 1
	s := &r.cells[n%uint64(len(r.cells))]
	before := s.turn.Load()
	if before&1 != 0 || before > 2*n || !s.turn.CompareAndSwap(before, 2*n+1) { // another writer has it, a round apart
		r.lost.Add(1)
		return
	}
	s.track.Store(t)
	what, where := pack(kind, cause, of)
	s.what.Store(what)
	s.where.Store(where)
	s.at.Store(int64(began.Sub(r.origin)))
	s.wait.Store(wait)
	s.work.Store(work)
	s.turn.Store(2*n + 2)
}

// Total is the sum of a track's spans.
type Total struct {
	Count      uint64
	Wait, Work time.Duration
}

// Total returns the sum of all spans so far.
func (t *Track) Total() Total {
	total := Total{Count: t.count.Load(), Wait: time.Duration(t.wait.Load())}
	for kind := range t.work {
		total.Work += t.Work(Kind(kind))
	}
	return total
}

// Work returns the sum of the work of all spans of a kind so far.
func (t *Track) Work(kind Kind) time.Duration { return time.Duration(t.work[kind].Load()) }

// Snapshot appends the spans in the ring to spans, in the order in which they ended. What is overwritten meanwhile is
// left out.
func (r *Ring) Snapshot(spans []Span) []Span {
	end := r.next.Load()
	return r.read(spans, end-min(end, uint64(len(r.cells))), end)
}

// read appends those of the spans from one number to another that are whole.
func (r *Ring) read(spans []Span, from, end uint64) []Span {
	size := uint64(len(r.cells))
	spans = slices.Grow(spans, int(end-from))
	for n := from; n < end; n++ {
		s := &r.cells[n%size]
		if s.turn.Load() != 2*n+2 {
			continue
		}
		kind, cause, of := unpack(s.what.Load(), s.where.Load())
		span := Span{
			Track: s.track.Load().name, Kind: kind, Cause: cause, Of: of,
			At: time.Duration(s.at.Load()), Wait: time.Duration(s.wait.Load()), Work: time.Duration(s.work.Load()),
		}
		if s.turn.Load() == 2*n+2 {
			spans = append(spans, span)
		}
	}
	return spans
}

// Tap takes a ring's spans as they come.
type Tap struct {
	ring   *Ring
	next   uint64
	missed uint64
}

// Tap returns one that begins here. It is open until it is closed.
func (r *Ring) Tap() *Tap {
	r.taps.Add(1)
	return &Tap{ring: r, next: r.next.Load()}
}

// Close says that nobody drains it any more.
func (t *Tap) Close() { t.ring.taps.Add(-1) }

// Drain appends the spans that ended since it was called last. Who waits for longer than the ring takes to go round
// misses some.
func (t *Tap) Drain(spans []Span) []Span {
	size, end := uint64(len(t.ring.cells)), t.ring.next.Load()
	from := max(t.next, end-min(end, size))
	for n := max(from, end-min(end, size/2)); n < end; n++ { // what is older and not there was given up
		if t.ring.cells[n%size].turn.Load() < 2*n+2 {
			end = n
		}
	}
	had := len(spans)
	spans = t.ring.read(spans, from, end)
	t.missed += end - t.next - uint64(len(spans)-had)
	t.next = end
	return spans
}

// Missed returns how many spans were not taken.
func (t *Tap) Missed() uint64 { return t.missed }
