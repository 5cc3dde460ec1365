package exec

import (
	"fmt"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// reader reads timestamps on a goroutine of its own, so that the caller does not wait in the driver: some drivers wait
// there until all work of the device is done. If it does not come back, it is left there, and the card counts as lost.
type reader struct {
	q      *queue
	ask    chan driver.Recording
	answer chan error
	late   *time.Timer
	ticks  []uint64 // of the last answer; answer orders its use
}

func newReader(q *queue) *reader {
	r := &reader{q: q, ask: make(chan driver.Recording), answer: make(chan error, 1), late: time.NewTimer(time.Hour)}
	go r.serve()
	return r
}

func (r *reader) serve() {
	for x := range r.ask {
		var err error
		if r.ticks, err = x.Ticks(r.ticks[:0]); r.q.alive(nil) == nil {
			x.ResetStamps()
		}
		r.answer <- err
	}
}

// read appends the timestamps of a recording that has ended, and clears them for another run.
func (r *reader) read(x driver.Recording, to []uint64) ([]uint64, error) {
	if err := r.q.alive(nil); err != nil {
		return to, err
	}
	r.ask <- x
	for began := time.Now(); ; {
		limit := r.q.d.Patience() // it may change meanwhile
		r.late.Reset(min(patience, limit/4))
		select {
		case err := <-r.answer:
			if err != nil {
				return to, err
			}
			return append(to, r.ticks...), nil
		case <-r.late.C:
			if time.Since(began) >= limit {
				return to, r.q.alive(fmt.Errorf("%w: %s has not read its timestamps for %s, of what has ended",
					backend.ErrHung, r.q.d.Facts().Name, limit))
			}
		}
	}
}

// close ends the goroutine: at once, or when the driver returns.
func (r *reader) close() {
	if r != nil {
		r.late.Stop()
		close(r.ask)
	}
}
