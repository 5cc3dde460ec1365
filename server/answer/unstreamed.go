package answer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/server/exchange"
)

// Limits of the memory for answers that are not streamed, in bytes. It is held until they are complete and written.
const (
	keptBytes = 96 << 20 // of all requests together
	keptSlab  = 256 << 10
	keptFree  = 64 << 10 // of each request: so much is not charged
	keptWait  = 10 * time.Second
	keptQueue = 4096 // requests that may wait for memory; there are fewer connections
)

// unstreamed is a request's share of the memory for answers that are not streamed.
type unstreamed struct {
	stock *stock
	x     *exchange.Exchange

	mu          sync.Mutex
	bytes, paid int64
	ended       bool
}

// keep begins the account of a request, which gives its memory back when the exchange ends.
func keep(s *stock, x *exchange.Exchange) *unstreamed {
	k := &unstreamed{stock: s, x: x}
	context.AfterFunc(x.Context, k.end)
	return k
}

var (
	errKept    = errors.New("the memory for answers that are no streams is taken: try again later, or ask for a stream")
	errTooMuch = fmt.Errorf("the answer takes more than the %d MiB that are kept of answers that are no streams: "+
		"ask for a stream, or for fewer choices, tokens or log-probabilities", keptBytes>>20)
)

// add takes memory for more bytes of the answer; it waits for a share, and fails if the answer is too large for any.
func (k *unstreamed) add(ctx context.Context, bytes int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return context.Cause(k.x.Context)
	}
	k.bytes += bytes
	for k.bytes > k.paid+keptFree {
		if k.paid+keptSlab > k.stock.size {
			return errTooMuch
		}
		if err := k.pay(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (k *unstreamed) pay(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, keptWait, errKept)
	defer cancel()
	if err := k.stock.take(ctx, k.x, keptSlab); err != nil {
		return err
	}
	k.paid += keptSlab
	return nil
}

// end gives the request's memory back.
func (k *unstreamed) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.paid > 0 {
		k.stock.leave(k.x, k.paid)
	}
}
