package kv

import (
	"errors"
	"fmt"
)

// BlockSize is the number of positions in a block.
const BlockSize = 64

// Block is the number of a block of the device's KV memory, from 0.
type Block int32

// Seq names an open sequence; the caller chooses it.
type Seq uint64

var (
	// ErrFull is wrapped by Grow when open sequences use too much for the blocks asked for.
	ErrFull = errors.New("the KV cache is full")
	// ErrUnknown is wrapped when a sequence is not open: never opened, closed, or forgotten by Reset.
	ErrUnknown = errors.New("the sequence is not open")
)

// Cache is the books of one device's blocks. Every decision depends on the calls alone, so that a replay
// repeats it. Not safe for concurrent use: one actor owns it.
type Cache struct {
	blocks int
	free   []Block // a stack; its top is granted next
	seqs   map[Seq]*sequence
	tree   tree

	hits, misses, evictions uint64
}

// sequence is an open sequence. path[i] is the tree's node for the tokens of table[i]: the node's own block,
// or one that a twin of table[i] backs. len(path) ≤ len(table) is how far Publish got.
type sequence struct {
	table []Block
	path  []int32
}

// Stats counts blocks by state (Blocks = Free + Cached + Used) and what happened since New.
type Stats struct {
	Blocks    int
	Free      int
	Cached    int    // in the prefix tree and used by no open sequence: evicted when blocks run out
	Used      int    // in the table of at least one open sequence, counted once
	Hits      uint64 // prompt tokens that Open found cached
	Misses    uint64 // prompt tokens that Open left to compute
	Evictions uint64 // cached blocks given up for Grow
}

// New makes the books of that many blocks, all free.
func New(blocks int) *Cache {
	c := &Cache{blocks: max(blocks, 0)}
	c.Reset()
	return c
}

// Reset forgets every sequence and every cached prefix: the device lost its memory, or the owner restarted.
// The counters of Stats go on.
func (c *Cache) Reset() {
	c.free = make([]Block, c.blocks)
	for i := range c.free {
		c.free[i] = Block(c.blocks - 1 - i) // block 0 is granted first
	}
	c.seqs = make(map[Seq]*sequence)
	c.tree = newTree(c.blocks)
}

// Open starts a sequence and pins the longest cached prefix of tokens, in whole blocks and short of the last
// token: at least one is left to compute, because sampling needs its logits. The sequence's table is then
// blocks, and cached = len(blocks)*BlockSize positions need no computing. The caller must not change blocks.
func (c *Cache) Open(id Seq, tokens []int32) (blocks []Block, cached int, err error) {
	if c.seqs[id] != nil {
		return nil, 0, fmt.Errorf("sequence %d is already open: close it first", id)
	}
	s := &sequence{}
	parent := noNode
	for end := BlockSize; end < len(tokens); end += BlockSize {
		n := c.tree.find(parent, (*tokenBlock)(tokens[end-BlockSize:end]))
		if n == noNode {
			break
		}
		c.tree.pin(n)
		s.path = append(s.path, n)
		s.table = append(s.table, c.tree.nodes[n].block)
		parent = n
	}
	c.seqs[id] = s
	cached = len(s.table) * BlockSize
	c.hits += uint64(cached)
	c.misses += uint64(len(tokens) - cached)
	return s.tail(len(s.table)), cached, nil
}

// Grow grants n more blocks, appended to the sequence's table, all or none. Free blocks go first, then cached
// ones, least recently used first. The caller must not change the result.
func (c *Cache) Grow(id Seq, n int) ([]Block, error) {
	s, err := c.seq(id)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("grow sequence %d by %d blocks: want 0 or more", id, n)
	}
	if n > len(c.free)+c.tree.idle {
		return nil, fmt.Errorf("grow sequence %d by %d blocks: %d free and %d cached of %d: %w",
			id, n, len(c.free), c.tree.idle, c.blocks, ErrFull)
	}
	for range n {
		if len(c.free) == 0 {
			c.free = append(c.free, c.tree.evict())
			c.evictions++
		}
		last := len(c.free) - 1
		s.table = append(s.table, c.free[last])
		c.free = c.free[:last]
	}
	return s.tail(n), nil
}

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
	if room := len(s.table) * BlockSize; len(tokens) > room {
		return fmt.Errorf("publish %d positions of sequence %d: its %d blocks hold %d: grow it first",
			len(tokens), id, len(s.table), room)
	}
	parent := noNode
	if len(s.path) > 0 {
		parent = s.path[len(s.path)-1]
	}
	for i := len(s.path); (i+1)*BlockSize <= len(tokens); i++ {
		text := (*tokenBlock)(tokens[i*BlockSize : (i+1)*BlockSize])
		n := c.tree.find(parent, text)
		switch {
		case n == noNode:
			n = c.tree.insert(parent, text, s.table[i])
		case c.tree.nodes[n].refs == 0:
			c.free = append(c.free, c.tree.replace(n, s.table[i])) // two equal blocks, one unused: keep ours
		default:
			c.tree.nodes[n].twins = append(c.tree.nodes[n].twins, s.table[i])
		}
		s.path = append(s.path, n)
		parent = n
	}
	return nil
}

// Table returns the sequence's blocks in order of position, nil for one that is not open. The caller must not
// change the slice; its entries stay as they are until Close.
func (c *Cache) Table(id Seq) []Block {
	s := c.seqs[id]
	if s == nil {
		return nil
	}
	return s.tail(len(s.table))
}

// Close ends a sequence. Its published blocks stay cached for later prompts, the others are free at once: no
// step that reads or writes them may be under way.
func (c *Cache) Close(id Seq) error {
	s, err := c.seq(id)
	if err != nil {
		return err
	}
	delete(c.seqs, id)
	// From the end, so that a block goes idle before the blocks that it continues: eviction meets leaves first.
	for i := len(s.table) - 1; i >= 0; i-- {
		b, kept := s.table[i], false
		if i < len(s.path) {
			b, kept = c.tree.release(s.path[i], b)
		}
		if !kept {
			c.free = append(c.free, b)
		}
	}
	return nil
}

// Stats says how the blocks are used at the moment.
func (c *Cache) Stats() Stats {
	return Stats{
		Blocks: c.blocks, Free: len(c.free), Cached: c.tree.idle,
		Used: c.blocks - len(c.free) - c.tree.idle,
		Hits: c.hits, Misses: c.misses, Evictions: c.evictions,
	}
}

func (c *Cache) seq(id Seq) (*sequence, error) {
	s := c.seqs[id]
	if s == nil {
		return nil, fmt.Errorf("sequence %d: %w", id, ErrUnknown)
	}
	return s, nil
}

// tail is the last n blocks of the table, clipped so that an append by the caller copies.
func (s *sequence) tail(n int) []Block {
	end := len(s.table)
	return s.table[end-n : end : end]
}
