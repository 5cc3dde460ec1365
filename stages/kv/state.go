package kv

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
)

// snapshot is what a sequence has of a class of states beside its slot.
type snapshot struct {
	from  int32 // 1 + the node whose snapshot its own slot begins with, pinned until it is passed; 0: none
	at    int   // position after which kept was asked for; 0: none is
	kept  int32 // slot that the device copies the state to
	ready bool  // it has been copied
}

// Start is the slot of a state class whose snapshot the sequence's own slot must begin with, before its first step; ok
// is false where the state begins at nothing. The snapshot is pinned until Pass tells of a position after it.
func (c *Cache) Start(id Seq, class int) (slot int32, ok bool) {
	s := c.seqs[id]
	if s == nil || s.states[class].from == 0 {
		return 0, false
	}
	return c.tree.at(class, s.states[class].from-1).block, true
}

// pinState pins the snapshot at the end of a path that has one.
func (c *Cache) pinState(s *sequence, class int) {
	if len(s.path) > 0 {
		n := s.path[len(s.path)-1]
		c.tree.pin(class, n)
		s.states[class].from = n + 1
	}
}

// unpinState says that the own slot begins as the snapshot: it may be evicted.
func (c *Cache) unpinState(s *sequence, class int) bool {
	from := s.states[class].from - 1
	if from < 0 {
		return false
	}
	s.states[class].from = 0
	c.tree.release(class, from, c.tree.at(class, from).block)
	return true
}

// Snapshot grants a slot for a copy of the sequence's state after the first pos positions, a whole number of blocks. ok
// is false where there is none: a sequence goes on without. The device copies in the order of steps; Snapped says that
// it did, and Publish of these positions then makes it what later prompts begin with. One is under way at a time.
func (c *Cache) Snapshot(id Seq, class, pos int) (slot int32, ok bool, err error) {
	s, err := c.seq(id)
	switch {
	case err != nil:
		return 0, false, err
	case !c.classes[class].State:
		return 0, false, fmt.Errorf("snapshot of sequence %d: class %d has no states", id, class)
	case pos <= 0 || pos%backend.BlockSize != 0:
		return 0, false, fmt.Errorf("snapshot of sequence %d after %d positions: want whole blocks of %d",
			id, pos, backend.BlockSize)
	case s.states[class].at != 0:
		return 0, false, fmt.Errorf("snapshot of sequence %d after %d positions: the one after %d is under way",
			id, pos, s.states[class].at)
	}
	slot, ok = c.take(class)
	if ok {
		s.states[class].at, s.states[class].kept, s.states[class].ready = pos, slot, false
	}
	return slot, ok, nil
}

// Snapped says that the state was copied to the slot that Snapshot granted.
func (c *Cache) Snapped(id Seq, class int) error {
	s, err := c.seq(id)
	if err != nil {
		return err
	}
	if s.states[class].at == 0 {
		return fmt.Errorf("snapshot of sequence %d in class %d: none is under way", id, class)
	}
	s.states[class].ready = true
	c.keepStates(s)
	return nil
}

// keepStates hands snapshots that are copied to their nodes, once these are published. Nobody uses them yet.
func (c *Cache) keepStates(s *sequence) {
	for i := range s.states {
		k := s.states[i].at / backend.BlockSize
		if k == 0 || !s.states[i].ready || k > len(s.path) {
			continue
		}
		slot, n := s.states[i].kept, s.path[k-1]
		s.states[i].at = 0
		if c.tree.has(i, n) { // an equal one is there
			c.free[i] = append(c.free[i], slot)
			continue
		}
		e := c.tree.at(i, n)
		e.block, e.users = slot, 1
		c.tree.release(i, n, slot)
	}
}

// passState lets go of the snapshot that a sequence began with once it has computed a position of its own.
func (c *Cache) passState(s *sequence, class, done int) bool {
	if from := s.states[class].from - 1; from < 0 || done <= c.tree.depth(from)*backend.BlockSize {
		return false
	}
	return c.unpinState(s, class)
}

func (c *Cache) closeState(s *sequence, class int) {
	c.unpinState(s, class)
	if s.states[class].at != 0 {
		c.free[class] = append(c.free[class], s.states[class].kept)
	}
	c.free[class] = append(c.free[class], s.tables[class].Blocks...)
}
