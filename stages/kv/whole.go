package kv

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Hold starts a sequence of what is cached of a text of whole blocks, its last one included, for a caller that copies
// the blocks: Tables has those that the row behind the first cached positions sees. Nothing is counted. If the device
// has no room for what lies in other tiers, nothing is done and the error is ErrFull.
func (c *Cache) Hold(id Seq, salt uint64, text []int32) (cached int, err error) {
	return c.hold(id, salt, append(slices.Clip(text), 0)) // one behind the last block, which a sequence would compute
}

// Fill starts a sequence of a text of so many blocks, of which nothing is cached, for a caller that has them: Tables
// has the places of those that the row behind the text sees. Once they are written, Publish shares them; a sequence
// that is closed before shares nothing. If there is no room, nothing is done and the error is ErrFull.
func (c *Cache) Fill(id Seq, salt uint64, blocks int) error {
	if c.seqs[id] != nil {
		return fmt.Errorf("sequence %d is already open: close it first", id)
	}
	s := &sequence{salt: salt, tables: make([]backend.Table, len(c.classes))}
	end := blocks * backend.BlockSize
	c.begin(s, end)
	c.seqs[id] = s
	if err := c.Grow(id, end, end); err != nil {
		delete(c.seqs, id)
		return err
	}
	return nil
}

// Forget drops what is cached of a text of whole blocks, in every tier, from its end up to what open sequences use or
// other texts go on from. It returns how many positions of the text it dropped.
func (c *Cache) Forget(salt uint64, text []int32) (dropped int) {
	path := c.known(salt, append(slices.Clip(text), 0))
	for i := len(path) - 1; i >= 0; i-- {
		n := path[i]
		if d := c.tree.node(n); d.paths > 0 || d.children > 0 {
			break
		}
		for class := range c.classes {
			if c.tree.isIdle(class, n) {
				c.evict(class, n)
			}
		}
		dropped += backend.BlockSize
	}
	return dropped
}
