package kv

import "slices"

// Lose forgets all sequences, and all blocks of the device, which has lost its memory. A block in another tier stays
// if its copy is done, and those of all the text before it are. Lose may be called only when no move is being
// carried out.
func (c *Cache) Lose() {
	old := remains{tree: c.tree, moves: c.moves, classes: c.classes, there: map[int32]bool{}, now: map[int32]int32{}}
	c.Reset()
	for t := Host; int(t) < Tiers; t++ {
		for class := range c.classes {
			for n := old.tree.idle[t][class].oldest; n != noNode; n = old.tree.at(class, n).newer {
				if old.stays(class, n) {
					c.restore(class, &old, n)
				}
			}
			taken := map[int32]bool{}
			for n := c.tree.idle[t][class].oldest; n != noNode; n = c.tree.at(class, n).newer {
				taken[c.tree.at(class, n).block] = true
			}
			c.free[t][class] = slices.DeleteFunc(c.free[t][class], func(b int32) bool { return taken[b] })
		}
	}
}

// restore enters a class's block, which stays where it lies, into the new tree.
func (c *Cache) restore(class int, old *remains, n int32) {
	was, is := old.tree.at(class, n), c.again(old, n)
	e := c.tree.at(class, is)
	e.block, e.tier, e.seen = was.block, was.tier, was.seen
	c.tree.link(class, is)
}

// again returns the new tree's node for the text of an old node, and inserts it if need be.
func (c *Cache) again(old *remains, n int32) int32 {
	if n == noNode {
		return noNode
	}
	is, known := old.now[n]
	if !known {
		d := &old.tree.nodes[n]
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
	there   map[int32]bool  // by old node: whether classes that keep all have the blocks of it and of all before it
	now     map[int32]int32 // by old node: the new tree's node
}

// stays says whether a class's block in another tier can be kept.
func (r *remains) stays(class int, n int32) bool { return r.came(class, n) && r.whole(n) }

// came says whether a class has a block in another tier, and the copy to it is done.
func (r *remains) came(class int, n int32) bool {
	e := r.tree.at(class, n)
	return e.block != noBlock && e.tier > Device && r.moves.last[e.tier][class][e.block] <= r.moves.done
}

// whole says whether classes that keep all have the blocks of all of a text up to a node.
func (r *remains) whole(n int32) bool {
	if n == noNode {
		return true
	}
	is, known := r.there[n]
	if !known {
		is = r.whole(r.tree.nodes[n].parent)
		for class, x := range r.classes {
			is = is && (!x.keepsAll() || r.came(class, n))
		}
		r.there[n] = is
	}
	return is
}
