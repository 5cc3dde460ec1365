package quota

import (
	"context"
	"errors"
	"math"
	"sync"
)

// ErrFull refuses the client with the most waiting requests when too many wait.
var ErrFull = errors.New("too many wait already")

// Pool is a number of units that clients share.
type Pool struct {
	mu      sync.Mutex
	size    int64
	most    int                     // requests that may wait
	each    func(clients int) int64 // most units of a client, given the number of clients; nil: no limit
	used    int64
	held    map[string]int64 // by client
	waiting []*waiter        // by arrival
	grants  uint64
	last    map[string]uint64 // by client: the number of its last grant
}

// remembered bounds the number of clients whose last grant is remembered.
const remembered = 4096

type waiter struct {
	client  string
	units   int64
	most    int64
	granted chan error
}

// NewPool makes a pool of size units, for which at most waiting requests may wait at a time.
func NewPool(size int64, waiting int) *Pool {
	return &Pool{size: size, most: waiting, held: map[string]int64{}, last: map[string]uint64{}}
}

// Limit sets a bound on the units of one client, given the number of clients that hold units or wait for some. Units
// that a client already holds stay when others come. Limit must be called before the first Take.
func (p *Pool) Limit(each func(clients int) int64) *Pool {
	p.each = each
	return p
}

// Take waits for units and gives them to the client. Clients with the fewest units come first, and equal ones take
// turns. Units are granted while at most `most` units of the pool are used by all, or if none is used. Take fails
// with the cause of ctx, or with ErrFull. Give returns the units.
func (p *Pool) Take(ctx context.Context, client string, units, most int64) error {
	w := &waiter{client, units, min(most, p.size), make(chan error, 1)}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.grant()
	if len(p.waiting) > p.most {
		p.crowd()
	}
	p.mu.Unlock()
	select {
	case err := <-w.granted:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.drop(w) { // it was granted or refused meanwhile
		if err := <-w.granted; err == nil {
			p.give(client, units)
		}
		return context.Cause(ctx)
	}
	p.grant() // one client less may raise the limit of the others
	return context.Cause(ctx)
}

// Give returns units of a client to the pool.
func (p *Pool) Give(client string, units int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.give(client, units)
}

func (p *Pool) give(client string, units int64) {
	p.used -= units
	if p.held[client] -= units; p.held[client] <= 0 {
		delete(p.held, client)
	}
	p.grant()
}

// Used returns the number of units that are taken.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Waiting returns the number of requests that wait.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// Wanted reports whether somebody waits.
func (p *Pool) Wanted() bool { return p.Waiting() > 0 }

// grant serves waiting requests as far as units last, clients with the fewest units first.
func (p *Pool) grant() {
	limit := p.limit()
	for {
		var next *waiter
		for _, w := range p.waiting {
			fits := p.used == 0 || p.used+w.units <= w.most && p.held[w.client]+w.units <= limit
			if fits && (next == nil || p.before(w.client, next.client)) {
				next = w
			}
		}
		if next == nil {
			return
		}
		p.used += next.units
		p.held[next.client] += next.units
		if len(p.last) >= remembered {
			clear(p.last)
		}
		p.grants++
		p.last[next.client] = p.grants
		p.drop(next)
		next.granted <- nil
	}
}

// before reports whether client a is served before client b.
func (p *Pool) before(a, b string) bool {
	if p.held[a] != p.held[b] {
		return p.held[a] < p.held[b]
	}
	return p.last[a] < p.last[b]
}

// limit returns the number of units that a client may have now.
func (p *Pool) limit() int64 {
	if p.each == nil {
		return math.MaxInt64
	}
	clients := len(p.held)
	come := map[string]bool{}
	for _, w := range p.waiting {
		if _, has := p.held[w.client]; !has && !come[w.client] {
			come[w.client] = true
			clients++
		}
	}
	return p.each(max(clients, 1))
}

// crowd refuses the last request of the client with the most waiting requests.
func (p *Pool) crowd() {
	count := map[string]int{}
	var loser *waiter
	for _, w := range p.waiting {
		count[w.client]++
	}
	for _, w := range p.waiting {
		if loser == nil || count[w.client] >= count[loser.client] {
			loser = w
		}
	}
	p.drop(loser)
	loser.granted <- ErrFull
}

// drop removes a waiting request, and reports whether it was there.
func (p *Pool) drop(w *waiter) bool {
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return true
		}
	}
	return false
}
