package kv

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Kept is a block that the disk has from before.
type Kept struct {
	*Text
	Class int
	Used  int64 // when: only the order counts
}

// shelved is a block of text of which the disk has something.
type shelved struct {
	*Text
	classes []bool // those that have it
	used    int64  // by it, or by what goes on from it
	depth   int    // blocks before it; -1: something before it is missing
	node    int32
}

// Restore enters what the disk has from before into books that were just made. What cannot be of use, because something
// before it is missing, and what there is no room for, is dropped: of that, what was not used for longest.
func (c *Cache) Restore(all []Kept) {
	found := map[Key]*shelved{}
	for i := range all {
		x := &all[i]
		if x.Class >= len(c.classes) || x.Parent.next(&x.Tokens) != x.Key {
			continue
		}
		c.before(found, x.Text)
		s := c.shelve(found, x.Text)
		s.classes[x.Class], s.used = true, max(s.used, x.Used)
	}
	order := make([]*shelved, 0, len(found))
	for _, s := range found {
		order = append(order, s)
	}
	slices.SortFunc(order, func(a, b *shelved) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	c.place(found, order)
	c.settle(found, order)
	c.noteAll()
}

// shelve returns what is found of a block of text.
func (c *Cache) shelve(found map[Key]*shelved, t *Text) *shelved {
	s := found[t.Key]
	if s == nil {
		s = &shelved{Text: t, classes: make([]bool, len(c.classes)), node: noNode}
		found[t.Key] = s
	}
	return s
}

// before adds the blocks of text before one that brings them with it.
func (c *Cache) before(found map[Key]*shelved, t *Text) {
	parent := rootKey(t.Salt)
	for at := backend.BlockSize; at <= len(t.Before); at += backend.BlockSize {
		text := (*tokenBlock)(t.Before[at-backend.BlockSize:])
		key := parent.next(text)
		c.shelve(found, &Text{Key: key, Parent: parent, Salt: t.Salt, Tokens: *text})
		parent = key
	}
}

// place finds what stands before each block, and orders them: what was not used for longest first, and each behind
// what goes on from it.
func (c *Cache) place(found map[Key]*shelved, order []*shelved) {
	done := map[Key]bool{}
	for _, s := range order {
		var path []*shelved
		for at := s; at != nil && !done[at.Key]; at = found[at.Parent] {
			path, done[at.Key] = append(path, at), true
		}
		for i := len(path) - 1; i >= 0; i-- {
			x := path[i]
			before := found[x.Parent]
			switch {
			case before != nil && before.depth >= 0 && c.goesOn(before):
				x.depth = before.depth + 1
			case before != nil || x.Parent != rootKey(x.Salt):
				x.depth = -1
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *shelved) int { return b.depth - a.depth })
	for _, s := range order {
		if before := found[s.Parent]; before != nil {
			before.used = max(before.used, s.used)
		}
	}
	slices.SortStableFunc(order, func(a, b *shelved) int { return cmp.Compare(a.used, b.used) })
}

// goesOn says whether a block is there in all classes of which a longer text needs it.
func (c *Cache) goesOn(s *shelved) bool {
	for class, x := range c.classes {
		if x.keepsAll() && !s.classes[class] {
			return false
		}
	}
	return true
}

// settle gives ordered blocks their numbers on the disk, and drops those for which there is none.
func (c *Cache) settle(found map[Key]*shelved, order []*shelved) {
	for class, x := range c.classes {
		beyond := -max(x.Disk, 0)
		for _, s := range order {
			if s.classes[class] && s.depth >= 0 {
				beyond++
			}
		}
		for _, s := range order {
			switch {
			case !s.classes[class]:
			case s.depth < 0:
				c.moves.dropped(class, s.Text)
			case beyond > 0:
				beyond--
				c.moves.dropped(class, s.Text)
			default:
				n := c.grow(s, found)
				e := c.tree.at(class, n)
				e.tier, e.seen = Disk, true
				e.block, _ = c.take(Disk, class)
				c.tree.link(class, n)
			}
		}
	}
}

// grow returns the node of a block, and inserts it, and those before it, if need be.
func (c *Cache) grow(s *shelved, all map[Key]*shelved) int32 {
	if s == nil {
		return noNode
	}
	if s.node == noNode {
		s.node = c.tree.insert(s.Salt, c.grow(all[s.Parent], all), &s.Tokens)
	}
	return s.node
}

// dropped queues that a block which the books do not have is dropped from the disk.
func (m *moves) dropped(class int, text *Text) {
	m.made++
	m.due = append(m.due, Move{Class: class, From: Disk, To: Gone, Block: noBlock, Text: text})
}
