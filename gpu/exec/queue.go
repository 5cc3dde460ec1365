package exec

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// queue is the two queues of a device, with a lock for recording and submitting. All submissions that compute raise one
// timeline, in order; copies, which run beside them, raise another.
type queue struct {
	mu     sync.Mutex
	d      driver.Device
	lost   atomic.Pointer[error] // why the card is lost: none of its work will end
	line   driver.Timeline
	last   uint64 // value of what was submitted last
	copies driver.Timeline
	copied uint64

	waits []driver.Point // of the submission at hand
	one   [1]driver.Recording
}

func newQueue(d driver.Device) (q *queue, err error) {
	q = &queue{d: d}
	if q.line, err = d.Timeline(); err == nil {
		q.copies, err = d.Timeline()
	}
	return q, err
}

func (q *queue) closeLines() {
	for _, line := range []driver.Timeline{q.line, q.copies} {
		if line != nil {
			line.Close()
		}
	}
}

// record makes a recording for one of the queues, with room for some timestamps.
func (q *queue) record(of driver.Queue, stamps int, fill func(driver.Recording) error) (driver.Recording, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, err := q.d.Record(of, stamps)
	if err != nil {
		return nil, err
	}
	if err = fill(r); err == nil {
		err = r.End()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// submit queues recordings that compute, to begin when the timeline of copies has come to a value. It returns the value
// that their own timeline has at their end.
func (q *queue) submit(copied uint64, all ...driver.Recording) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.alive(nil); err != nil {
		return 0, err
	}
	q.waits = q.waits[:0]
	if copied > 0 {
		q.waits = append(q.waits, driver.Point{Timeline: q.copies, Value: copied})
	}
	if err := q.alive(q.d.Submit(all, q.waits, driver.Point{Timeline: q.line, Value: q.last + 1})); err != nil {
		return 0, err
	}
	q.last++
	return q.last, nil
}

// copy queues a recording of copies, to begin when the timelines of what computes and of copies have come to these
// values. It returns the value of the timeline of copies at its end. What it waits for was submitted before, so no two
// submissions wait for each other.
func (q *queue) copy(r driver.Recording, computed, copied uint64) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.alive(nil); err != nil {
		return 0, err
	}
	q.waits = q.waits[:0]
	if computed > 0 {
		q.waits = append(q.waits, driver.Point{Timeline: q.line, Value: computed})
	}
	if copied > 0 {
		q.waits = append(q.waits, driver.Point{Timeline: q.copies, Value: copied})
	}
	q.one[0] = r
	if err := q.alive(q.d.Submit(q.one[:], q.waits, driver.Point{Timeline: q.copies, Value: q.copied + 1})); err != nil {
		return 0, err
	}
	q.copied++
	return q.copied, nil
}

// once records, submits and waits for the end.
func (q *queue) once(fill func(driver.Recording) error) error {
	_, err := q.after(0, fill)
	return err
}

// after is once, to begin when the timeline of copies has come to a value. It returns the value that the other timeline
// had at the end.
func (q *queue) after(copied uint64, fill func(driver.Recording) error) (uint64, error) {
	r, err := q.record(driver.Compute, 0, fill)
	if err != nil {
		return 0, err
	}
	value, err := q.submit(copied, r)
	if err == nil {
		err = q.wait(value)
	}
	q.close(r)
	return value, err
}

func (q *queue) close(all ...driver.Recording) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range all {
		r.Close()
	}
}

// idle waits for all that was submitted.
func (q *queue) idle() error {
	q.mu.Lock()
	last, copied := q.last, q.copied
	q.mu.Unlock()
	return errors.Join(q.wait(last), q.reach(q.copies, copied, 0))
}

// wait blocks until what computes has come to a value.
func (q *queue) wait(value uint64) error { return q.reach(q.line, value, 0) }

// patience is how long a wait for the device lasts before reach looks whether the device hangs.
const patience = time.Second

// slower is how many times as long as predicted the longest submission may take before the device counts as hung, if
// that is more than the device's patience.
const slower = 20

// reach blocks until a timeline has a value. As long as any work of the device ends, it waits on; if none ends for the
// device's patience, the device hangs and counts as lost.
func (q *queue) reach(line driver.Timeline, value uint64, predicted time.Duration) error {
	limit := max(q.d.Patience(), slower*predicted)
	look, since, seen := min(patience, limit/4), time.Now(), [2]uint64{}
	for {
		if err := q.alive(nil); err != nil {
			return err
		}
		err := line.Wait(value, look)
		if !errors.Is(err, driver.ErrTimeout) {
			return q.alive(err)
		}
		reached, err := q.reached()
		switch {
		case err != nil:
			return q.alive(err)
		case reached != seen:
			seen, since = reached, time.Now()
		case time.Since(since) >= limit:
			return q.alive(fmt.Errorf("%w: nothing that %s was given has ended for %s: a kernel does not end, or another "+
				"program holds the card", backend.ErrHung, q.d.Facts().Name, limit))
		}
	}
}

// reached returns the values of both timelines.
func (q *queue) reached() (values [2]uint64, err error) {
	if values[0], err = q.line.Value(); err == nil {
		values[1], err = q.copies.Value()
	}
	return values, err
}

// alive returns err, or why the card is lost.
func (q *queue) alive(err error) error {
	if errors.Is(err, driver.ErrLost) || errors.Is(err, backend.ErrHung) {
		q.d.Hold() // kernels may still be using the memory
		gone := fmt.Errorf("%w: %w", backend.ErrLost, err)
		q.lost.CompareAndSwap(nil, &gone)
	}
	if gone := q.lost.Load(); gone != nil {
		return *gone
	}
	return err
}
