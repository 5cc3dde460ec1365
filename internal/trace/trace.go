// Package trace keeps the last spans of a process in a fixed ring: messages that an actor handled, segments that a
// device computed, reads of a disk, each with its duration and the wait before it.
//
// It is always on: recording a span takes no lock, allocates nothing and never waits. The package knows no actor and
// no model; readers of spans decide what to do with them and how to write them down.
package trace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ring holds the last spans of all its tracks. It is safe for concurrent use.
type Ring struct {
	origin time.Time
	next   atomic.Uint64
	lost   atomic.Uint64
	taps   atomic.Int32 // that are open
	cells  []cell
	reads  sync.Mutex // held by a reader, of which there is one at a time
}

// cell holds span n of the ring when its turn is 2n+2. While the turn is odd, the cell belongs to the writer of span n
// (2n+1), or to a reader of it (2n+3). So its other fields need not be atomic, each of which would wait for the one
// before to reach the cache.
type cell struct {
	turn  atomic.Uint64
	track *Track
	what  uint64 // see pack
	where uint64
	at    int64
	wait  int64
	work  int64
}

// New returns a ring of size spans, whose times count from origin.
func New(size int, origin time.Time) *Ring { return &Ring{origin: origin, cells: make([]cell, size)} }

// Origin returns the time from which spans count.
func (r *Ring) Origin() time.Time { return r.origin }

// Lost returns the number of spans that were dropped because the ring went round while one was being written or read.
func (r *Ring) Lost() uint64 { return r.lost.Load() }

// Tapped reports whether a Tap is open, whose reader may want exact spans.
func (r *Ring) Tapped() bool { return r.taps.Load() > 0 }

// Tapped is Ring.Tapped.
func (t *Track) Tapped() bool { return t.ring.Tapped() }

// Track is a source of spans, such as an actor. It keeps the sums of all its spans.
type Track struct {
	ring  *Ring
	name  string
	count atomic.Uint64
	wait  atomic.Int64        // nanoseconds
	work  [kinds]atomic.Int64 // nanoseconds, by kind
}

// Track returns a new track of the ring.
func (r *Ring) Track(name string) *Track { return &Track{ring: r, name: name} }

// Record writes a span of work from began to ended that was asked for at asked.
func (t *Track) Record(kind Kind, of Of, asked, began, ended time.Time) {
	t.record(kind, Unknown, of, asked, began, ended)
}

func (t *Track) record(kind Kind, cause Cause, of Of, asked, began, ended time.Time) {
	wait, work := int64(began.Sub(asked)), int64(ended.Sub(began))
	t.count.Add(1)
	if wait != 0 {
		t.wait.Add(wait)
	}
	t.work[kind].Add(work)
	r := t.ring
	n := r.next.Add(1) - 1
	s := &r.cells[n%uint64(len(r.cells))]
	before := s.turn.Load()
	if before&1 != 0 || before > 2*n || !s.turn.CompareAndSwap(before, 2*n+1) { // another has it, a round apart
		r.lost.Add(1)
		return
	}
	s.track, s.at, s.wait, s.work = t, int64(began.Sub(r.origin)), wait, work
	s.what, s.where = pack(kind, cause, of)
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

// Snapshot appends the spans in the ring to spans, in the order in which they ended. Spans that are overwritten
// meanwhile are left out.
func (r *Ring) Snapshot(spans []Span) []Span {
	end := r.next.Load()
	return r.read(spans, end-min(end, uint64(len(r.cells))), end)
}

// read appends the complete spans from number from up to end.
func (r *Ring) read(spans []Span, from, end uint64) []Span {
	r.reads.Lock()
	defer r.reads.Unlock()
	size := uint64(len(r.cells))
	spans = slices.Grow(spans, int(end-from))
	for n := from; n < end; n++ {
		s := &r.cells[n%size]
		if !s.turn.CompareAndSwap(2*n+2, 2*n+3) {
			continue
		}
		kind, cause, of := unpack(s.what, s.where)
		spans = append(spans, Span{
			Track: s.track.name, Kind: kind, Cause: cause, Of: of,
			At: time.Duration(s.at), Wait: time.Duration(s.wait), Work: time.Duration(s.work),
		})
		s.turn.Store(2*n + 2)
	}
	return spans
}

// Tap reads a ring's spans as they come.
type Tap struct {
	ring   *Ring
	next   uint64
	missed uint64
}

// Tap returns a tap that begins at the present span. Close must be called.
func (r *Ring) Tap() *Tap {
	r.taps.Add(1)
	return &Tap{ring: r, next: r.next.Load()}
}

// Close ends the tap.
func (t *Tap) Close() { t.ring.taps.Add(-1) }

// Drain appends the spans that ended since its last call. A caller that waits longer than the ring takes to go round
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

// Missed returns the number of spans that Drain missed.
func (t *Tap) Missed() uint64 { return t.missed }
