package exchange

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Limits of turns. Work that keeps a processor busy for long needs a turn. A turn reserves the memory of the most
// expensive work, compiling the largest form (grammar.DefaultLimits).
const (
	turnBytes = 64 << 20
	mostTurns = 4
)

// turns returns the number of turns at a time: half of the processors, since the others compute answers.
func turns() int64 { return int64(max(1, min(mostTurns, runtime.GOMAXPROCS(0)/2))) }

// Turn waits until the exchange may begin work that takes long; the caller calls done at its end. Clients take turns,
// and a request that waits too long gets ErrCrowded.
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

// ErrCrowded ends a request that has waited too long for its share of a common resource.
var ErrCrowded = errors.New("requests that came before are as large as what is taken at a time: try again later")

// Large runs work on the request's texts. If the body was larger than largeBody, it waits for a turn first.
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

// largeBody is the size in bytes of a body that takes about 10 ms to become a prompt.
const largeBody = 64 << 10
