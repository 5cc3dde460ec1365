package answer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/quota"
)

// stock is what answers share: places among those that are computed, or bytes of those that are kept. While somebody
// waits for some of it, answers that are not read lose theirs.
type stock struct {
	pool *quota.Pool
	size int64

	mu       sync.Mutex
	holders  map[*exchange.Exchange]int64 // what each has
	watching bool                         // whether their clients read
}

// look is the time between two looks.
const look = 250 * time.Millisecond

// newStock makes one of so many units, for which at most so many may wait; of the client that has most of those, the
// last one is refused then.
func newStock(size int64, waiting int) *stock {
	return &stock{pool: quota.NewPool(size, waiting), size: size, holders: map[*exchange.Exchange]int64{}}
}

// newPlaces makes the places of a model that computes so many answers at once. A client has as many as are computed of
// its own while all clients have as many, and some that follow: so there are always places for another client, whose
// answers the engine then gives some of the first one's places to.
func newPlaces(computed int) *stock {
	s := newStock(int64(min(rooms*(computed+following), sessions)), queue)
	s.pool.Limit(func(clients int) int64 { return int64(computed/clients + following) })
	return s
}

// take waits for units for an exchange; leave gives them back.
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

// watch looks, as long as somebody waits, whether the answers of those that have something are read.
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
