package exchange

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Making something that takes a processor for long takes a turn, and the memory that is set aside for it: that of the
// most costly form (grammar.DefaultLimits).
const (
	turnBytes = 64 << 20
	mostTurns = 4
)

// turns is how many have one at a time: half of the processors are for those who are answered.
func turns() int64 { return int64(max(1, min(mostTurns, runtime.GOMAXPROCS(0)/2))) }

// Turn waits until the exchange may make something that takes long, which ends with done. Clients take turns, and
// who waits too long is told ErrCrowded.
func (x *Exchange) Turn(ctx context.Context) (done func(), err error) {
	pool := x.intake.turns
	ctx, cancel := context.WithTimeoutCause(ctx, x.intake.wait, ErrCrowded)
	defer cancel()
	began := time.Now()
	if err := pool.Take(ctx, x.Client, turnBytes, turns()*turnBytes); err != nil {
		return nil, err
	}
	x.mu.Lock()
	x.waited += time.Since(began)
	x.mu.Unlock()
	return func() { pool.Give(x.Client, turnBytes) }, nil
}

// ErrCrowded says that a request has waited too long for its share of what all have together.
var ErrCrowded = errors.New("requests that came before are as large as what is taken at a time: try again later")

// Large has work done on what the request says, which takes a turn if its body was large.
func (x *Exchange) Large(work func() error) error {
	if x.body > largeBody {
		done, err := x.Turn(x.Context)
		if err != nil {
			return err
		}
		defer done()
	}
	return work()
}

// largeBody is how many bytes of text take some 10 ms to be made into a prompt.
const largeBody = 64 << 10
