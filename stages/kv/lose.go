package kv

import "slices"

// Lose forgets all sequences, and all blocks of the device, which has lost its memory. A block in another tier, or that
// is on the disk as well, stays if its copy is done, and those of all the text before it are. Lose may be called only
// when no move is being carried out.
func (c *Cache) Lose() {
	old := remains{tree: c.tree, moves: c.moves, classes: c.classes, there: map[int32]bool{}, now: map[int32]int32{}}
	old.used = old.tree.users()
	c.Reset()
	for _, m := range slices.Concat(old.moves.begun, old.moves.due) {
		if m.To == Gone { // its file may be there, since it may not be carried out any more
			c.moves.dropped(m.Class, m.Text)
		}
	}
	for class := range c.classes {
		for _, t := range []Tier{Disk, Host, Device} {
			for n := old.tree.idle[t][class].oldest; n != noNode; n = old.tree.at(class, n).newer {
				c.restore(class, &old, n)
			}
		}
		for _, n := range old.used {
			if old.tree.at(class, n).users > 0 {
				c.restore(class, &old, n)
			}
		}
	}
	c.noteAll()
	for class := range c.classes {
		for t := Host; int(t) < Tiers; t++ {
			taken := map[int32]bool{}
			for n := range c.tree.size {
				switch e := c.tree.at(class, n); {
				case e.block == noBlock:
				case e.tier == t:
					taken[e.block] = true
				case t == Disk && e.kept != noBlock:
					taken[e.kept] = true
				}
			}
			c.free[t][class] = slices.DeleteFunc(c.free[t][class], func(b int32) bool { return taken[b] })
		}
		for n := range old.tree.size { // files that nobody knows any more
			if old.tree.has(class, n) && old.tree.slot(class, n) != noBlock && !old.stayed(c, class, n) {
				c.moves.dropped(class, old.tree.text(n))
			}
		}
	}
}

// restore enters a class's block, if it stays where it lies, into the new tree.
func (c *Cache) restore(class int, old *remains, n int32) {
	if !old.stays(class, n) {
		return
	}
	was, is := old.tree.at(class, n), c.again(old, n)
	e := c.tree.at(class, is)
	e.seen, e.tier = was.seen, Disk
	switch slot := old.slot(class, n); {
	case was.tier == Host && old.moves.last[Host][class][was.block] <= old.moves.done:
		e.tier, e.block, e.kept = Host, was.block, slot
		c.unsaved = c.unsaved || slot == noBlock && c.classes[class].Disk > 0
	default:
		e.block = slot
	}
	c.tree.link(class, is)
}

// again returns the new tree's node for the text of an old node, and inserts it if need be.
func (c *Cache) again(old *remains, n int32) int32 {
	if n == noNode {
		return noNode
	}
	is, known := old.now[n]
	if !known {
		d := old.tree.node(n)
		is = c.tree.insert(d.salt, c.again(old, d.parent), &d.tokens)
		old.now[n] = is
	}
	return is
}

// remains are the books from before the device lost its memory.
type remains struct {
	tree    tree
	moves   moves
	classes []Class
	used    []int32         // nodes with users, each behind what goes on from it
	there   map[int32]bool  // by old node: whether classes that keep all have the blocks of it and of all before it
	now     map[int32]int32 // by old node: the new tree's node
}

// stays says whether a class's block in another tier can be kept.
func (r *remains) stays(class int, n int32) bool { return r.came(class, n) && r.whole(n) }

// came says whether a class has a block in another tier, and the copy to it is done.
func (r *remains) came(class int, n int32) bool {
	e := r.tree.at(class, n)
	return e.block != noBlock &&
		(e.tier == Host && r.moves.last[Host][class][e.block] <= r.moves.done || r.slot(class, n) != noBlock)
}

// slot is a class's block number on the disk, if its copy there is done, or noBlock.
func (r *remains) slot(class int, n int32) int32 {
	if slot := r.tree.slot(class, n); slot != noBlock && r.moves.last[Disk][class][slot] <= r.moves.done {
		return slot
	}
	return noBlock
}

// stayed says whether the new books have a class's block on the disk.
func (r *remains) stayed(c *Cache, class int, n int32) bool {
	is, known := r.now[n]
	return known && c.tree.has(class, is) && c.tree.slot(class, is) != noBlock
}

// whole says whether classes that keep all have the blocks of all of a text up to a node.
func (r *remains) whole(n int32) bool {
	if n == noNode {
		return true
	}
	is, known := r.there[n]
	if !known {
		is = r.whole(r.tree.node(n).parent)
		for class, x := range r.classes {
			is = is && (!x.keepsAll() || r.came(class, n))
		}
		r.there[n] = is
	}
	return is
}

// users lists the nodes with users, each behind what goes on from it.
func (t *tree) users() (all []int32) {
	depth := map[int32]int{}
	for n := range t.size {
		if slices.ContainsFunc(t.of(n), func(e entry) bool { return e.users > 0 }) {
			all = append(all, n)
			for at := n; at != noNode; at = t.node(at).parent {
				depth[n]++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b int32) int { return depth[b] - depth[a] })
	return all
}
