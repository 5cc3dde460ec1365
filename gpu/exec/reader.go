package exec

import (
	"fmt"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// reader reads timestamps for a goroutine that must not wait in the driver: some drivers wait with them until all is
// done that the device was given. One that does not come back is left there, and the card is lost.
type reader struct {
	q      *queue
	ask    chan driver.Recording
	answer chan error
	late   *time.Timer
	ticks  []uint64 // the answer
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

// read appends the timestamps of a recording that has ended, and prepares it for another run.
func (r *reader) read(x driver.Recording, to []uint64) ([]uint64, error) {
	if err := r.q.alive(nil); err != nil {
		return to, err
	}
	r.late.Reset(r.q.d.Patience())
	r.ask <- x
	select {
	case err := <-r.answer:
		if err != nil {
			return to, err
		}
		return append(to, r.ticks...), nil
	case <-r.late.C:
		return to, r.q.alive(fmt.Errorf("%w: %s has not read its timestamps for %s, of what has ended", backend.ErrHung,
			r.q.d.Facts().Name, r.q.d.Patience()))
	}
}

// close ends it, at once or when the driver lets go of it.
func (r *reader) close() {
	if r != nil {
		r.late.Stop()
		close(r.ask)
	}
}
