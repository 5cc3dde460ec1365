package answer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/quota"
)

// stock is a resource that answers share: places in the engine, or bytes of answers that are kept. While a request
// waits for units, answers whose clients do not read them are ended and lose theirs.
type stock struct {
	pool *quota.Pool
	size int64

	mu       sync.Mutex
	holders  map[*exchange.Exchange]int64 // units that each holds
	watching bool                         // look is scheduled
}

// look is the interval at which answers are checked for being read.
const look = 250 * time.Millisecond

// newStock makes a stock of size units, for which at most waiting requests may wait. Beyond that, the last request of
// the client with most waiting requests is refused.
func newStock(size int64, waiting int) *stock {
	return &stock{pool: quota.NewPool(size, waiting), size: size, holders: map[*exchange.Exchange]int64{}}
}

// newPlaces makes the places of a model, where computed is the number of answers that it computes at once. A client
// may hold an equal share of computed, and following more: the engine always has answers of other clients to give
// places to.
func newPlaces(computed int) *stock {
	s := newStock(int64(min(rooms*(computed+following), sessions)), queue)
	s.pool.Limit(func(clients int) int64 { return int64(computed/clients + following) })
	return s
}

// take waits for units for an exchange; leave gives them back. A full queue is errQueue.
func (s *stock) take(ctx context.Context, x *exchange.Exchange, units int64) error {
	s.watch(units)
	if err := s.pool.Take(ctx, x.Client, units, s.size); err != nil {
		if errors.Is(err, quota.ErrFull) {
			return errQueue
		}
		return err
	}
	s.mu.Lock()
	s.holders[x] += units
	s.mu.Unlock()
	return nil
}

func (s *stock) leave(x *exchange.Exchange, units int64) {
	s.mu.Lock()
	if s.holders[x] -= units; s.holders[x] == 0 {
		delete(s.holders, x)
	}
	s.mu.Unlock()
	s.pool.Give(x.Client, units)
}

var errQueue = errors.New("as many requests wait already as may: try again later")

// watch starts to check, if a request has to wait, whether the answers that hold units are read by their clients.
func (s *stock) watch(units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching || s.pool.Used()+units <= s.size {
		return
	}
	s.watching = true
	time.AfterFunc(look, s.look)
}

func (s *stock) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pool.Wanted() {
		s.watching = false
		return
	}
	for x := range s.holders {
		if x.Unread() {
			x.GiveUp()
		}
	}
	time.AfterFunc(look, s.look)
}
