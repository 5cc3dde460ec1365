package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Blocks on the disk are copies: a block is written there when nothing else is to be done and nobody uses it any more,
// or, where any prefix can be gone on from, as soon as it is computed. It stays in memory until its place is wanted;
// when it comes back, its file stays. An entry in another tier has its number on the disk in kept; only those that are
// nowhere else are in the disk's idle list, and can be dropped for others.

// Key stands for a text up to the end of a block, and for its salt.
type Key [sha256.Size]byte

// Text says which block of which text a block is.
type Text struct {
	Key, Parent Key
	Salt        uint64
	Tokens      [backend.BlockSize]int32
	Before      []int32 // all tokens before these, where the disk has no blocks that say so: no class keeps all
}

// rootKey is the parent of the first block of texts with a salt.
func rootKey(salt uint64) Key {
	return sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("sluice kv"), salt))
}

// next is the key of a block after one with this key.
func (k Key) next(text *tokenBlock) Key {
	var b [sha256.Size + 4*backend.BlockSize]byte
	copy(b[:], k[:])
	for i, id := range text {
		binary.LittleEndian.PutUint32(b[sha256.Size+4*i:], uint32(id))
	}
	return sha256.Sum256(b[:])
}

// Keys are the keys of the whole blocks of a text, from the first one on.
func Keys(salt uint64, tokens []int32) []Key {
	all := make([]Key, 0, len(tokens)/backend.BlockSize)
	at := rootKey(salt)
	for len(tokens) >= backend.BlockSize {
		at = at.next((*tokenBlock)(tokens))
		all = append(all, at)
		tokens = tokens[backend.BlockSize:]
	}
	return all
}

// keyOf is the key of a node, or of what stands before a first one.
func (t *tree) keyOf(salt uint64, n int32) Key {
	if n == noNode {
		return rootKey(salt)
	}
	return t.node(n).key
}

func (t *tree) text(n int32) *Text {
	d := t.node(n)
	return &Text{Key: d.key, Parent: t.keyOf(d.salt, d.parent), Salt: d.salt, Tokens: d.tokens}
}

// whole is the text of a node from which it can be found again.
func (c *Cache) whole(n int32) *Text {
	t := c.tree.text(n)
	if slices.ContainsFunc(c.classes, Class.keepsAll) {
		return t
	}
	for at := c.tree.node(n).parent; at != noNode; at = c.tree.node(at).parent {
		t.Before = append(t.Before, c.tree.node(at).tokens[:]...)
	}
	for i, j := 0, len(t.Before)-backend.BlockSize; i < j; i, j = i+backend.BlockSize, j-backend.BlockSize {
		for k := range backend.BlockSize { // they were added from the last block on
			t.Before[i+k], t.Before[j+k] = t.Before[j+k], t.Before[i+k]
		}
	}
	return t
}

// save queues moves to the disk for blocks that it has yet to get, at most so many. What fell idle last goes first: of
// a text, what others go on from.
func (c *Cache) save(most int) {
	for class, x := range c.classes {
		for t := Device; t < Disk && x.Disk > 0; t++ {
			for n := c.tree.idle[t][class].newest; n != noNode; n = c.tree.at(class, n).older {
				if most == 0 {
					return
				}
				if c.worth(class, n) && c.write(class, n) {
					most--
				}
			}
		}
	}
	if c.plain() {
		for _, id := range slices.Sorted(maps.Keys(c.seqs)) {
			for _, n := range c.seqs[id].path {
				for class, x := range c.classes {
					if most == 0 {
						return
					}
					if x.keepsAll() && c.write(class, n) {
						most--
					}
				}
			}
		}
	}
	c.unsaved = false
}

// disk says whether there is one.
func (c *Cache) disk() bool {
	return slices.ContainsFunc(c.classes, func(x Class) bool { return x.Disk > 0 })
}

// plain says whether every block of the disk is of a class that keeps all.
func (c *Cache) plain() bool {
	return !slices.ContainsFunc(c.classes, func(x Class) bool { return x.Disk > 0 && !x.keepsAll() })
}

// write queues the move of a class's block at n to the disk, if it is not there and there is room.
func (c *Cache) write(class int, n int32) bool {
	e := c.tree.at(class, n)
	if e.block == noBlock || c.slot(class, n) != noBlock {
		return false
	}
	into, ok := c.take(Disk, class)
	if !ok {
		return false // all of it is in memory as well
	}
	e.kept = into
	c.moves.add(Move{Class: class, From: e.tier, To: Disk, Block: e.block, Into: into, Text: c.whole(n)})
	return true
}

// Saved says whether no sequence is open, and the disk has, or failed to get, all that it can get.
func (c *Cache) Saved() bool { return len(c.seqs) == 0 && !c.unsaved && c.moves.done == c.moves.made }

// Shrink drops the block of a class from the disk that is nowhere else and was not used for longest.
func (c *Cache) Shrink(class int) {
	if n := c.tree.idle[Disk][class].oldest; n != noNode {
		c.evict(class, n)
	}
}

// sink frees the place in memory of an idle block that is on the disk as well.
func (c *Cache) sink(class int, n int32) {
	e := c.tree.at(class, n)
	c.tree.unlink(class, n)
	c.free[e.tier][class] = append(c.free[e.tier][class], e.block)
	e.tier, e.block, e.kept = Disk, e.kept, noBlock
	c.tree.link(class, n)
	c.note(n)
}

// unkeep drops a class's block at n from the disk, if it is there.
func (c *Cache) unkeep(class int, n int32) {
	e := c.tree.at(class, n)
	slot := c.slot(class, n)
	if slot == noBlock {
		return
	}
	if e.tier == Disk {
		e.tier, e.block = Device, noBlock
	}
	e.kept = noBlock
	c.free[Disk][class] = append(c.free[Disk][class], slot)
	c.moves.add(Move{Class: class, From: Disk, To: Gone, Block: slot, Text: c.tree.text(n)})
}

// slot is a class's block number on the disk at n, or noBlock.
func (c *Cache) slot(class int, n int32) int32 { return c.tree.slot(class, n) }

func (t *tree) slot(class int, n int32) int32 {
	if e := t.at(class, n); e.tier < Disk || e.block == noBlock {
		return e.kept
	}
	return t.at(class, n).block
}

// Failed records that the oldest move that was begun is done, but failed on the disk. A block that could not be written
// is where it was, and no other one is tried until there is more to write; if it left memory meanwhile, and is to be
// read again, that read fails in its turn. One that could not be read is lost, unless it was computed anew meanwhile;
// sequences that wait for it are closed, and returned: they have to be opened again.
func (c *Cache) Failed(m Move) (again []Seq) {
	failed, slot := c.moves.over(), m.Block
	if m.To == Disk {
		slot, c.unsaved = m.Into, false // else the same would be tried for ever
	}
	if m.To == Gone || c.moves.last[Disk][m.Class][slot] > failed {
		return nil // somebody else has its place
	}
	n := c.tree.holder(m.Class, slot)
	if n == noNode || c.moves.lastRead[m.Class][slot] > failed {
		return nil
	}
	e := c.tree.at(m.Class, n)
	if m.To == Device && e.users > 0 && e.made < failed {
		again = c.using(m.Class, n, e.block)
		for _, id := range again {
			_ = c.Close(id) // it is open
		}
	}
	if e.tier < Disk && (m.To == Disk || e.made >= failed) {
		c.unkeep(m.Class, n) // memory has it
	} else {
		c.evict(m.Class, n)
	}
	return again
}

// holder is the node whose block of a class has a number on the disk, or noNode.
func (t *tree) holder(class int, slot int32) int32 {
	for n := range t.size {
		if t.at(class, n).block != noBlock && t.slot(class, n) == slot {
			return n
		}
	}
	return noNode
}

// using lists the sequences that have a node's block in their table, in order.
func (c *Cache) using(class int, n, b int32) (all []Seq) {
	for id, s := range c.seqs {
		t := &s.tables[class]
		if k := slices.Index(s.path, n); k >= t.First && k < t.First+len(t.Blocks) && t.At(k) == b {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}
