package exchange

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/sluice-ai/sluice/stages/bill"
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
// and a request that waits too long gets ErrCrowded. An exchange whose body went through no Intake waits for nobody.
func (x *Exchange) Turn(ctx context.Context) (done func(), err error) {
	if x.intake == nil {
		return func() {}, nil
	}
	pool := x.intake.turns
	ctx, cancel := context.WithTimeoutCause(ctx, x.intake.wait, ErrCrowded)
	defer cancel()
	x.Spend(bill.Tokenize)
	began := time.Now()
	if err := pool.Take(ctx, x.Client, turnBytes, turns()*turnBytes); err != nil {
		return nil, err
	}
	x.Spend(bill.Queue)
	x.mu.Lock()
	x.waited += time.Since(began)
	x.mu.Unlock()
	return func() { pool.Give(x.Client, turnBytes) }, nil
}

// ErrCrowded ends a request that has waited too long for its share of a common resource.
var ErrCrowded = errors.New("requests that came before are as large as what is taken at a time: try again later")

// Large runs work on the request's texts, which asks from time to time whether to stop: if the client has gone, or
// there was no turn. If the body was larger than largeBody, it waits for a turn first; other work does once it has
// taken longer than smallWork, since a template may take long for a small body, too.
func (x *Exchange) Large(work func(stop func() bool) error) error {
	var done func()
	var crowded error
	take := func() {
		if done == nil && crowded == nil {
			done, crowded = x.Turn(x.Context)
		}
	}
	defer func() {
		if done != nil {
			done()
		}
	}()
	if x.body > largeBody {
		if take(); crowded != nil {
			return crowded
		}
	}
	began := time.Now()
	err := work(func() bool {
		if time.Since(began) >= smallWork {
			take()
		}
		return crowded != nil || x.Context.Err() != nil
	})
	return cmp.Or(crowded, err)
}

// smallWork is how long work of a small body may take without a turn.
const smallWork = 50 * time.Millisecond

// largeBody is the size in bytes of a body that takes about 10 ms to become a prompt.
const largeBody = 64 << 10
