package kv

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Publish says that the first len(tokens) positions of the sequence are computed and hold these tokens: each
// whole block of them becomes shareable. Call it again with more tokens as the sequence goes on; blocks that
// it has seen cost nothing and are not compared again.
//
// Where another sequence published an equal block first and still uses it, this one's stays private (a twin):
// it takes the other's place in the tree when that one is closed first, else Close frees it.
func (c *Cache) Publish(id Seq, tokens []int32) error {
	s, err := c.seq(id)
	if err != nil {
		return err
	}
	for i := range c.classes {
		if room := s.tables[i].Room(); len(tokens) > room {
			return fmt.Errorf("publish %d positions of sequence %d: its blocks of class %d hold %d: grow it first",
				len(tokens), id, i, room)
		}
	}
	parent := noNode
	if len(s.path) > 0 {
		parent = s.path[len(s.path)-1]
	}
	for k := len(s.path); (k+1)*backend.BlockSize <= len(tokens); k++ {
		text := (*tokenBlock)(tokens[k*backend.BlockSize : (k+1)*backend.BlockSize])
		n := c.tree.find(s.salt, parent, text)
		if n == noNode {
			n = c.tree.insert(s.salt, parent, text)
		}
		c.tree.node(n).paths++
		c.unsaved = c.unsaved || c.disk() && c.plain()
		s.path = append(s.path, n)
		parent = n
		for i := range c.classes {
			if t := &s.tables[i]; k >= t.First {
				c.adopt(i, n, t.At(k))
			}
		}
		c.note(n)
	}
	return nil
}

// adopt makes a computed block the node's own, used by its sequence; or a twin, if the node has an equal block that
// is in use.
func (c *Cache) adopt(class int, n, b int32) {
	e := c.tree.at(class, n)
	switch {
	case e.users > 0:
		e.twins = append(e.twins, b)
		return
	case e.block != noBlock: // two equal blocks, one unused: keep ours
		c.tree.unlink(class, n)
		if e.tier == Disk {
			e.kept = e.block // the file is as good
		} else {
			c.free[e.tier][class] = append(c.free[e.tier][class], e.block)
		}
	}
	e.tier, e.block, e.users, e.made = Device, b, 1, c.moves.made
}

// Pass says that all positions before done are computed: blocks that no later row sees are given back. Those that were
// published stay cached, as long as nobody needs them for something else; those that the same prompt would go on from,
// if it came again, are worth as much as those at the text's end. It reports whether it gave back any.
func (c *Cache) Pass(id Seq, done int) (gave bool, err error) {
	s, err := c.seq(id)
	if err != nil {
		return false, err
	}
	for i, class := range c.classes {
		t := &s.tables[i]
		for len(t.Blocks) > 0 && t.First < class.first(done) {
			c.release(s, i, t.First, t.Blocks[0], class.first(s.again*backend.BlockSize) <= t.First && t.First < s.again)
			t.First, t.Blocks = t.First+1, t.Blocks[1:]
			gave = true
		}
	}
	return gave, nil
}
