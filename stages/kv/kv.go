package kv

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Seq names an open sequence; the caller chooses it.
type Seq uint64

// Class is the size of a cache class. Each has blocks of its own, with numbers from 0. What a block holds is the
// device's: keys and values of its positions, or the state after them, whose window is that of backend.Window.
type Class struct {
	Blocks  int
	Window  int  // positions that a row can see at most, itself included; 0: all
	Chunked bool // those of its own chunk of Window positions; see ir.Class
}

// Least is how many blocks of a class with a window one sequence alone needs: see backend.WindowBlocks.
func (c Class) Least(ahead int) int { return backend.WindowBlocks(c.Window, ahead) }

// first is the first block that the row at position pos sees.
func (c Class) first(pos int) int {
	return ir.Class{Window: c.Window, Chunked: c.Chunked}.First(pos) / backend.BlockSize
}

var (
	// ErrFull is wrapped by Grow when open sequences use too much for the blocks asked for.
	ErrFull = errors.New("the KV cache is full")
	// ErrUnknown is wrapped when a sequence is not open: never opened, closed, or forgotten by Reset.
	ErrUnknown = errors.New("the sequence is not open")
)

// Cache is the books of one device's blocks. Every decision depends on the calls alone, so that a replay
// repeats it. Not safe for concurrent use: one actor owns it.
type Cache struct {
	classes []Class
	free    [][]int32 // by class: a stack; its top is granted next
	seqs    map[Seq]*sequence
	tree    tree

	hits, misses, evictions uint64
}

// sequence is an open sequence. path[i] is the tree's node for the tokens of block i. In each class, the block of the
// sequence's table is then the node's own, or a twin of it. How far path reaches is how far Publish got.
type sequence struct {
	salt   uint64
	path   []int32
	tables []backend.Table // by class
}

// Stats counts blocks by state, of all classes together (Blocks = Free + Cached + Used), and what happened since New.
type Stats struct {
	Blocks    int
	Free      int
	Cached    int    // in the prefix tree and used by no open sequence: evicted when blocks run out
	Used      int    // in the table of at least one open sequence, counted once
	Hits      uint64 // prompt tokens that Open found cached
	Misses    uint64 // prompt tokens that Open left to compute
	Evictions uint64 // cached blocks given up for others
}

// New makes the books of these classes, all blocks free.
func New(classes ...Class) *Cache {
	c := &Cache{classes: classes}
	c.Reset()
	return c
}

// Reset forgets every sequence and every cached prefix: the device lost its memory, or the owner restarted.
// The counters of Stats go on, and tables that were handed out stay as they are.
func (c *Cache) Reset() {
	c.free = make([][]int32, len(c.classes))
	nodes := 0
	for i, class := range c.classes {
		for b := class.Blocks - 1; b >= 0; b-- { // block 0 is granted first
			c.free[i] = append(c.free[i], int32(b))
		}
		nodes = max(nodes, class.Blocks)
	}
	c.seqs = make(map[Seq]*sequence)
	c.tree = newTree(len(c.classes), nodes)
}

// Open starts a sequence and pins the longest cached prefix of tokens, in whole blocks and short of the last
// token: at least one is left to compute, because sampling needs its logits. A prefix is cached as far as the next row
// would find all that it sees: every block in a class without window, in one with a window those that reach into it.
// The first cached positions need no computing. Only sequences of the same salt share.
func (c *Cache) Open(id Seq, salt uint64, tokens []int32) (cached int, err error) {
	if c.seqs[id] != nil {
		return 0, fmt.Errorf("sequence %d is already open: close it first", id)
	}
	s := &sequence{salt: salt, tables: make([]backend.Table, len(c.classes))}
	s.path = c.known(salt, tokens)
	s.path = s.path[:c.complete(s.path)]
	for _, n := range s.path {
		c.tree.nodes[n].paths++
	}
	cached = len(s.path) * backend.BlockSize
	for i, class := range c.classes {
		t := &s.tables[i]
		t.First = class.first(cached)
		for _, n := range s.path[t.First:] {
			t.Blocks = append(t.Blocks, c.tree.pin(i, n))
		}
	}
	c.seqs[id] = s
	c.hits += uint64(cached)
	c.misses += uint64(len(tokens) - cached)
	return cached, nil
}

// known lists the nodes of the longest prefix of tokens that the tree has, whether or not their blocks are there.
func (c *Cache) known(salt uint64, tokens []int32) (path []int32) {
	parent := noNode
	for end := backend.BlockSize; end < len(tokens); end += backend.BlockSize {
		n := c.tree.find(salt, parent, (*tokenBlock)(tokens[end-backend.BlockSize:end]))
		if n == noNode {
			break
		}
		path, parent = append(path, n), n
	}
	return path
}

// complete is the length of the longest part of a path after which every class has what the next row sees.
func (c *Cache) complete(path []int32) (blocks int) {
	runs := make([]int, len(c.classes)) // blocks that are there, one after another, up to here
	for k, n := range path {
		all := true
		for i, class := range c.classes {
			if !c.tree.has(i, n) {
				runs[i] = 0
			} else {
				runs[i]++
			}
			all = all && runs[i] >= k+1-class.first((k+1)*backend.BlockSize)
		}
		if all {
			blocks = k + 1
		}
	}
	return blocks
}

// Tables are the sequence's blocks by class, nil for one that is not open. The caller may keep copies of the tables,
// and must not change their blocks, which stay as they are whatever happens to the sequence.
func (c *Cache) Tables(id Seq) []backend.Table {
	s := c.seqs[id]
	if s == nil {
		return nil
	}
	return s.tables
}

// Grow grants blocks, in every class or in none: up to position end in classes that keep all, up to soon in those that
// give blocks back, which need not be granted long before they are used. Free blocks go first, then cached ones, least
// recently used first.
func (c *Cache) Grow(id Seq, end, soon int) error {
	s, err := c.seq(id)
	if err != nil {
		return err
	}
	for i := range c.classes {
		free, idle := len(c.free[i]), c.tree.idle[i].length
		if n := c.wants(s, i, end, soon); n > free+idle {
			return fmt.Errorf("grow sequence %d to %d positions by %d blocks of class %d: %d free and %d cached of %d: %w",
				id, end, n, i, free, idle, c.classes[i].Blocks, ErrFull)
		}
	}
	for i := range c.classes {
		for range c.wants(s, i, end, soon) {
			b, _ := c.take(i)
			s.tables[i].Blocks = append(s.tables[i].Blocks, b)
		}
	}
	return nil
}

// wants is how many blocks of a class a sequence lacks.
func (c *Cache) wants(s *sequence, class, end, soon int) int {
	t := &s.tables[class]
	if c.classes[class].Window > 0 {
		end = min(end, soon)
	}
	return max(0, backend.BlocksFor(end)-t.First-len(t.Blocks))
}

// take grants one block of a class, if there is one.
func (c *Cache) take(class int) (b int32, ok bool) {
	if len(c.free[class]) == 0 {
		if c.tree.idle[class].length == 0 {
			return 0, false
		}
		c.evict(class)
	}
	last := len(c.free[class]) - 1
	b, c.free[class] = c.free[class][last], c.free[class][:last]
	return b, true
}

// evict frees the block of a class that has been idle longest. Where a class keeps all blocks, no prefix that goes on
// from there can be found any more: what the other classes have of the node is freed with it.
func (c *Cache) evict(class int) {
	n := c.tree.idle[class].oldest
	for i, other := range c.classes {
		if i == class || c.classes[class].keepsAll() && !other.keepsAll() && c.tree.isIdle(i, n) {
			c.free[i] = append(c.free[i], c.tree.drop(i, n))
			c.evictions++
		}
	}
	c.tree.prune(n)
}

// keepsAll says that the class gives no block back before the sequence ends.
func (c Class) keepsAll() bool { return c.Window == 0 }

// Close ends a sequence. Its published blocks stay cached for later prompts, the others are free at once: no
// step that reads or writes them may be under way.
func (c *Cache) Close(id Seq) error {
	s, err := c.seq(id)
	if err != nil {
		return err
	}
	delete(c.seqs, id)
	for i := range c.classes {
		// From the end, so that a block goes idle before the blocks that it continues: eviction meets leaves first.
		t := &s.tables[i]
		for at := len(t.Blocks) - 1; at >= 0; at-- {
			c.release(s, i, t.First+at, t.Blocks[at])
		}
	}
	for i := len(s.path) - 1; i >= 0; i-- {
		c.tree.nodes[s.path[i]].paths--
		c.tree.prune(s.path[i])
	}
	return nil
}

// release ends a sequence's use of its block at a place of its table.
func (c *Cache) release(s *sequence, class, at int, b int32) {
	if at < len(s.path) && c.tree.release(class, s.path[at], b) {
		return // it stays cached
	}
	c.free[class] = append(c.free[class], b)
}

// Stats says how the blocks are used at the moment.
func (c *Cache) Stats() Stats {
	s := Stats{Hits: c.hits, Misses: c.misses, Evictions: c.evictions}
	for i, class := range c.classes {
		s.Blocks += max(class.Blocks, 0)
		s.Free += len(c.free[i])
		s.Cached += c.tree.idle[i].length
	}
	s.Used = s.Blocks - s.Free - s.Cached
	return s
}

func (c *Cache) seq(id Seq) (*sequence, error) {
	s := c.seqs[id]
	if s == nil {
		return nil, fmt.Errorf("sequence %d: %w", id, ErrUnknown)
	}
	return s, nil
}
