package kv

import (
	"fmt"
)

// Tier is the memory that a block lies in. Only blocks of the device are in tables; those that nobody uses go from tier
// to tier when others need their place, and come back when a prompt begins with their text.
type Tier uint8

// From one tier blocks go to the next, and back.
const (
	Device Tier = iota
	Host
	Disk
	Tiers int = iota
)

// Move is a copy of a block to a place in the tier before or after its own. What the place held is not needed any more.
type Move struct {
	Class       int
	From, To    Tier
	Block, Into int32
}

// moves are the moves that were decided on. The books take each as done at once: moves are to be carried out in order,
// and nobody may use a block of the device before the last one that reads or writes it is done.
type moves struct {
	due        []Move // that nobody has begun, in order
	made, done uint64 // in all
	// last is the last one, by tier, class and place: of the device's, that reads or writes it; of others, that writes it.
	last      [Tiers][][]uint64
	out, back uint64 // from and to the device
}

// reset forgets what was decided on for blocks of these classes. That is right only when nothing of it is carried out
// any more.
func (m *moves) reset(classes []Class) {
	m.due, m.made, m.done = nil, 0, 0
	for t := range m.last {
		m.last[t] = make([][]uint64, len(classes))
		for i, class := range classes {
			m.last[t][i] = make([]uint64, max(class.room(Tier(t)), 0))
		}
	}
}

func (m *moves) add(x Move) {
	m.made++
	m.due = append(m.due, x)
	m.last[x.To][x.Class][x.Into] = m.made
	switch Device {
	case x.From:
		m.last[Device][x.Class][x.Block] = m.made
		m.out++
	case x.To:
		m.back++
	}
}

// NextMove is the next copy to begin, if there is one. Several may be begun before the first is done, as long as they
// have the effect of one after the other.
func (c *Cache) NextMove() (m Move, ok bool) {
	if len(c.moves.due) == 0 {
		return Move{}, false
	}
	m, c.moves.due = c.moves.due[0], c.moves.due[1:]
	return m, true
}

// Moved says that the oldest move that was begun is done.
func (c *Cache) Moved() { c.moves.done++ }

// Coming says whether blocks of the sequence's tables are on their way, or are still read for others that are. No step
// may use the tables before.
func (c *Cache) Coming(id Seq) bool {
	s := c.seqs[id]
	return s != nil && s.waits > c.moves.done
}

// room is how many blocks of the class a tier has.
func (c Class) room(t Tier) int { return [Tiers]int{c.Blocks, c.Host, c.Disk}[t] }

// take gives a place for one block of a class in a tier, if there is one that is free or can be vacated.
func (c *Cache) take(t Tier, class int) (b int32, ok bool) {
	if len(c.free[t][class]) == 0 {
		if c.tree.idle[t][class].length == 0 {
			return 0, false
		}
		c.vacate(t, class)
	}
	free := &c.free[t][class]
	last := len(*free) - 1
	b, *free = (*free)[last], (*free)[:last]
	return b, true
}

// vacate frees a place in a tier: the block of a class that has been idle longest there goes on to the next one, or is
// lost. What was passed behind a window goes nowhere: the next prompt rather goes on from the end of one before.
func (c *Cache) vacate(t Tier, class int) {
	n := c.tree.idle[t][class].oldest
	next, seen := t+1, c.classes[class].keepsAll() || c.tree.at(class, n).seen
	if int(next) < Tiers && c.classes[class].room(next) > 0 && seen {
		if into, ok := c.take(next, class); ok {
			c.tree.unlink(class, n)
			c.move(class, n, next, into)
			c.tree.link(class, n)
			return
		}
	}
	c.evict(class, n)
}

// evict frees an idle block of a class. Where a class keeps all blocks, no prefix that goes on from there can be found
// any more: what the other classes have of the node is freed with it.
func (c *Cache) evict(class int, n int32) {
	for i, other := range c.classes {
		if i == class || c.classes[class].keepsAll() && !other.keepsAll() && c.tree.isIdle(i, n) {
			e := c.tree.at(i, n)
			c.tree.unlink(i, n)
			c.free[e.tier][i] = append(c.free[e.tier][i], e.block)
			e.block = noBlock
			c.evictions++
		}
	}
	c.tree.prune(n)
}

// move decides that a block of a class goes to another tier, where it is in no list yet.
func (c *Cache) move(class int, n int32, to Tier, into int32) {
	e := c.tree.at(class, n)
	c.moves.add(Move{Class: class, From: e.tier, To: to, Block: e.block, Into: into})
	c.free[e.tier][class] = append(c.free[e.tier][class], e.block)
	e.tier, e.block = to, into
}

// fits says whether the device has room for what a sequence's path has beyond it, from where its tables begin.
func (c *Cache) fits(id Seq, s *sequence) error {
	for i := range c.classes {
		idle, beyond := c.tree.idle[Device][i].length, 0
		for _, n := range s.path[s.tables[i].First:] {
			switch e := c.tree.at(i, n); {
			case e.tier > Device:
				beyond++
			case e.users == 0:
				idle--
			}
		}
		if free := len(c.free[Device][i]); beyond > free+idle {
			return fmt.Errorf("open sequence %d with %d blocks of class %d from other memory: %d free and %d cached of %d: %w",
				id, beyond, i, free, idle, c.classes[i].Blocks, ErrFull)
		}
	}
	return nil
}

// fetch pins the blocks of a sequence's path, from where its tables begin, and has those come that lie beyond the
// device: tier by tier, so that those that leave one make room there.
func (c *Cache) fetch(s *sequence) {
	for i := range c.classes {
		for _, n := range s.path[s.tables[i].First:] {
			c.tree.pin(i, n)
		}
	}
	for t := Host; int(t) < Tiers; t++ {
		for i := range c.classes {
			for _, n := range s.path[s.tables[i].First:] {
				c.bring(i, n, t)
			}
		}
	}
}

// bring has a pinned block come to the device, if it lies in a tier.
func (c *Cache) bring(class int, n int32, from Tier) {
	for e := c.tree.at(class, n); e.tier == from && from > Device; from-- {
		into, ok := c.take(from-1, class)
		if !ok {
			panic("kv: no room for a block that comes back")
		}
		c.move(class, n, from-1, into)
	}
}
