package run

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Cores lets those who compute on the same cores take turns by the time that they have had: while several want turns,
// who has had least is next. So each has its share, however long its turns are, and waits for one turn of each other
// one at most.
type Cores struct {
	mu   sync.Mutex
	all  []*Sharer
	busy bool          // somebody has the turn
	now  time.Duration // what the last one that was given a turn had had then
	look *time.Timer   // nil: there was no need yet
}

// Sharer is one who takes turns. One goroutine at a time uses it.
type Sharer struct {
	cores *Cores
	turn  chan struct{}

	// Guarded by the lock of cores.
	had          time.Duration
	waits        bool
	began, ended time.Time     // of its newest turn
	pause, spare time.Duration // for which it is waited for after that, and what it has saved of that beyond leastPause
}

// Between two steps of an answer there is a while. So one who has just had a turn, and less than who waits, is waited
// for: always for leastPause, and for longer by a part of the time of its turns, which it saves for when it is late. A
// step that comes late on a busy machine, or waits for a grammar, costs an answer no turn of a picture then, which may
// last a thousand steps; and who wants a short turn now and then keeps nobody waiting.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = 100 * time.Millisecond
	sparePause = 2 // the part is one of so many
)

// Join adds one who takes turns, until Part.
func (c *Cores) Join() *Sharer {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Sharer{cores: c, turn: make(chan struct{}, 1), had: c.now}
	c.all = append(c.all, s)
	return s
}

// Part ends that it takes turns. It has none.
func (s *Sharer) Part() {
	c := s.cores
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(o *Sharer) bool { return o == s })
	c.next()
}

// Take waits for a turn, which Give ends. Its error is that of the context, and then there is none. Who wanted none for
// a while has saved nothing.
func (s *Sharer) Take(ctx context.Context) error {
	c := s.cores
	c.mu.Lock()
	at := now()
	gap := at.Sub(s.ended)
	if s.ended.IsZero() || gap > s.pause {
		s.had = max(s.had, c.now)
	}
	s.spare = max(s.spare-max(min(gap, s.pause)-leastPause, 0), 0)
	if len(c.all) == 1 && !c.busy {
		c.busy, s.began = true, at
		c.mu.Unlock()
		return nil
	}
	s.waits = true
	c.next()
	c.mu.Unlock()
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.waits {
		s.waits = false
		c.next()
		return context.Cause(ctx)
	}
	<-s.turn // it came meanwhile
	s.give()
	return context.Cause(ctx)
}

// Give ends a turn.
func (s *Sharer) Give() {
	s.cores.mu.Lock()
	defer s.cores.mu.Unlock()
	s.give()
}

func (s *Sharer) give() {
	s.ended = now()
	took := max(s.ended.Sub(s.began), 1)
	s.had += took
	s.spare = min(s.spare+took/sparePause, mostPause-leastPause)
	s.pause = leastPause + s.spare
	s.cores.busy = false
	s.cores.next()
}

// next gives the turn to who is next, if it is free: now, or when somebody who may come back at once has not.
func (c *Cores) next() {
	if c.busy {
		return
	}
	var first *Sharer
	for _, s := range c.all {
		if s.waits && (first == nil || s.had < first.had) {
			first = s
		}
	}
	if first == nil {
		return
	}
	at, left := now(), time.Duration(0)
	for _, s := range c.all {
		if !s.waits && !s.ended.IsZero() && s.had < first.had {
			left = max(left, s.pause-at.Sub(s.ended))
		}
	}
	if left > 0 {
		c.later(left)
		return
	}
	c.busy, c.now = true, max(c.now, first.had)
	first.waits, first.began = false, at
	first.turn <- struct{}{}
}

// later looks again.
func (c *Cores) later(in time.Duration) {
	if c.look == nil {
		c.look = time.AfterFunc(in, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.next()
		})
		return
	}
	c.look.Reset(in)
}
