package kv

import (
	"fmt"
	"slices"
)

// Tier is the memory that a block lies in. Only blocks of the device are in tables; those that nobody uses go from tier
// to tier when others need their place, and come back when a prompt begins with their text.
type Tier uint8

// Blocks move from the device to the host and back, from both to the disk, and from there to the device. What is on the
// disk may be in another tier as well (disk.go).
const (
	Device Tier = iota
	Host
	Disk
	Tiers int = iota
)

// Gone is where a block of the disk goes that is dropped.
const Gone = Tier(Tiers)

// Move is a copy of a block to a place in another tier. What the place held is not needed any more.
type Move struct {
	Class       int
	From, To    Tier
	Block, Into int32
	Text        *Text // which block it is; nil where the disk has no part in the move
}

// moves is the queue of copies that were decided on. Tree and tables show each as done at once. So the caller
// carries them out in order, and uses a block of the device only after the last move that reads or writes it.
type moves struct {
	due, begun []Move // not begun, and not done, in order
	made, done uint64 // numbers of moves decided on and done, in all
	// last is, by tier, class and block, the number of the last move that writes the block; on the device, that
	// reads or writes it.
	last        [Tiers][][]uint64
	lastRead    [][]uint64 // by class and block of the disk: the number of the last move that reads it
	out, back   uint64     // numbers of moves from the device to the host's memory, and back
	saved, read uint64     // numbers of moves to and from the disk
}

// reset forgets all moves. It may be called only when none of them is being carried out.
func (m *moves) reset(classes []Class) {
	m.due, m.begun, m.made, m.done = nil, nil, 0, 0
	numbers := func(t Tier) [][]uint64 {
		all := make([][]uint64, len(classes))
		for i, class := range classes {
			all[i] = make([]uint64, max(class.room(t), 0))
		}
		return all
	}
	for t := range m.last {
		m.last[t] = numbers(Tier(t))
	}
	m.lastRead = numbers(Disk)
}

func (m *moves) add(x Move) {
	m.made++
	m.due = append(m.due, x)
	if x.To == Gone {
		m.last[Disk][x.Class][x.Block] = m.made
		return
	}
	m.last[x.To][x.Class][x.Into] = m.made
	if x.From == Device {
		m.last[Device][x.Class][x.Block] = m.made
	}
	switch {
	case x.To == Disk:
		m.saved++
	case x.From == Disk:
		m.read++
		m.lastRead[x.Class][x.Block] = m.made
	case x.To == Host:
		m.out++
	default:
		m.back++
	}
}

// together says whether a move can be carried out at once with those before it, none of which needs another's
// effect: moves of memory, reads and writes of the disk, and what is dropped there, each among themselves.
func together(before []Move, m Move) bool {
	return !slices.ContainsFunc(before, func(x Move) bool {
		switch {
		case (x.From == Disk) != (m.From == Disk) || max(x.To, Host) != max(m.To, Host):
			return true
		case m.To == Gone || x.Class != m.Class:
			return false
		case m.From != Device && x.To == m.From && x.Into == m.Block:
			return true
		}
		return x.To == m.To && x.Into == m.Into && m.From != Device
	})
}

// NextMoves appends to out the next copies to begin, at most so many. Several may be begun before the first is done, as
// long as they have the effect of one after the other. None of those returned at once reads what another of them
// writes, but on the device: where a block is on its way out and back, that ends what is returned. They are all with
// the disk, or all without. Where nothing else is due, what the disk has yet to get is.
func (c *Cache) NextMoves(most int, out []Move) []Move {
	begun := len(out)
	if len(c.moves.due) == 0 && c.unsaved {
		c.save(most)
	}
	for len(c.moves.due) > 0 && len(out)-begun < most {
		m := c.moves.due[0]
		if !together(out[begun:], m) {
			break
		}
		out, c.moves.due = append(out, m), c.moves.due[1:]
	}
	c.moves.begun = append(c.moves.begun, out[begun:]...)
	return out
}

// Moved records that the oldest move that was begun is done.
func (c *Cache) Moved() { c.moves.over() }

// over counts the oldest move that was begun as done, and returns its number.
func (m *moves) over() uint64 {
	m.begun = m.begun[1:]
	m.done++
	return m.done
}

// Coming says whether moves that read or write blocks of the sequence's tables are still to be done. Until then no
// step may use the tables.
func (c *Cache) Coming(id Seq) bool {
	s := c.seqs[id]
	return s != nil && s.waits > c.moves.done
}

// room is how many blocks of the class a tier has.
func (c Class) room(t Tier) int { return [Tiers]int{c.Blocks, c.Host, c.Disk}[t] }

// take returns a block of a class in a tier that is free or can be vacated; false: there is none.
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

// vacate frees a block in a tier: what has been idle longest there moves to the next tier that has room, or is evicted.
// What lies behind a window is evicted at once: later prompts go on from the end of an earlier one rather than from its
// middle. What is on the disk already stays there.
func (c *Cache) vacate(t Tier, class int) {
	n := c.tree.idle[t][class].oldest
	worth := c.worth(class, n)
	for next := t + 1; int(next) < Tiers; next++ {
		if next == Disk && c.tree.at(class, n).kept != noBlock {
			c.sink(class, n)
			return
		}
		if !worth || c.classes[class].room(next) <= 0 {
			continue
		}
		if into, ok := c.take(next, class); ok {
			c.tree.unlink(class, n)
			c.move(class, n, next, into)
			c.tree.link(class, n)
			return
		}
	}
	c.evict(class, n)
}

// worth says whether an idle block is worth a move: a later prompt may go on from there.
func (c *Cache) worth(class int, n int32) bool {
	return c.classes[class].keepsAll() || c.tree.at(class, n).seen
}

// evict frees an idle block of a class. Where a class keeps all blocks, no prefix that goes on from there can be found
// any more: what the other classes have of the node is freed with it.
func (c *Cache) evict(class int, n int32) {
	for i, other := range c.classes {
		if i == class || c.classes[class].keepsAll() && !other.keepsAll() && c.tree.isIdle(i, n) {
			c.tree.unlink(i, n)
			c.unkeep(i, n)
			if e := c.tree.at(i, n); e.block != noBlock {
				c.free[e.tier][i] = append(c.free[e.tier][i], e.block)
				e.block = noBlock
			}
			c.evictions++
		}
	}
	c.note(n)
	c.tree.prune(n)
}

// move queues the copy of a class's block at node n to another tier. The node must be in no idle list of the class.
func (c *Cache) move(class int, n int32, to Tier, into int32) {
	e := c.tree.at(class, n)
	m := Move{Class: class, From: e.tier, To: to, Block: e.block, Into: into}
	if e.tier == Disk {
		m.Text, e.kept = c.tree.text(n), e.block // the file stays
	} else {
		c.free[e.tier][class] = append(c.free[e.tier][class], e.block)
	}
	if to == Disk {
		m.Text = c.whole(n)
	}
	c.moves.add(m)
	e.tier, e.block = to, into
	c.note(n)
}

// fits refuses with ErrFull if the device has no room for the blocks of a sequence's path that lie in other tiers.
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

// fetch pins the blocks of a sequence's path, from where its tables begin, and queues moves to the device for those
// that lie in other tiers: tier by tier, so that blocks that leave a tier make room in it.
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

// bring queues the move that takes a pinned block from a tier to the device, if it lies there.
func (c *Cache) bring(class int, n int32, from Tier) {
	if c.tree.at(class, n).tier != from {
		return
	}
	into, ok := c.take(Device, class)
	if !ok {
		panic("kv: no room for a block that comes back")
	}
	c.move(class, n, Device, into)
}
