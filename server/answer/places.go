package answer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/share"
)

// places are those of a model's answers: as many as are computed at once, and some that are ready to follow. Who waits
// for one is no session of the engine's yet.
type places struct {
	pool *share.Pool
	size int64

	mu       sync.Mutex
	holders  map[*exchange.Exchange]int // places that each has
	watching bool                       // whether their clients read
}

const (
	following = 2                      // answers that are opened beside those that are computed
	queue     = 8 * MaxChoices         // choices that may wait; of the client that has most of them, the last is refused
	unread    = 2 * time.Second        // how long an answer may be left unread while others wait for its place
	look      = 250 * time.Millisecond // between two looks
)

func newPlaces(e *actors.Engine) *places {
	size := int64(e.Info.Sequences + following)
	return &places{pool: share.NewPool(size, queue), size: size, holders: map[*exchange.Exchange]int{}}
}

// take waits for a place for one of an exchange's answers; leave gives it back.
func (p *places) take(ctx context.Context, x *exchange.Exchange) error {
	p.watch()
	if err := p.pool.Take(ctx, x.Client, 1, p.size); err != nil {
		if errors.Is(err, share.ErrFull) {
			return errQueue
		}
		return err
	}
	p.mu.Lock()
	p.holders[x]++
	p.mu.Unlock()
	return nil
}

func (p *places) leave(x *exchange.Exchange) {
	p.mu.Lock()
	if p.holders[x]--; p.holders[x] == 0 {
		delete(p.holders, x)
	}
	p.mu.Unlock()
	p.pool.Give(x.Client, 1)
}

var errQueue = errors.New("as many requests wait already as may: try again later")

// watch looks, as long as somebody waits, whether the answers that have places are read: those that are not give theirs
// up.
func (p *places) watch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watching || p.pool.Used() < p.size {
		return
	}
	p.watching = true
	time.AfterFunc(look, p.look)
}

func (p *places) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.pool.Wanted() {
		p.watching = false
		return
	}
	for x := range p.holders {
		if x.Unread() > unread {
			x.GiveUp()
		}
	}
	time.AfterFunc(look, p.look)
}
