package kv

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Seq names an open sequence; the caller chooses it.
type Seq uint64

// Class is the size of a cache class. Each class has blocks of its own, numbered from 0. On the device a block holds
// keys and values of its positions, or the recurrent state after them; the window of states is that of
// backend.Window.
type Class struct {
	Blocks  int  // of the device
	Host    int  // of the host's memory, for what the device has no room for any more
	Disk    int  // likewise, for what the host's memory has none for
	Window  int  // positions that a row can see at most, itself included; 0: all
	Chunked bool // a row sees only positions of its own chunk of Window positions; see ir.Class
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

// Cache is the allocator of one device's blocks, with the prefix tree. Every decision depends on the calls alone, so
// that a replay repeats it. Not safe for concurrent use: one actor owns it.
type Cache struct {
	classes []Class
	free    [Tiers][][]int32 // by class: a stack; its top is granted next
	seqs    map[Seq]*sequence
	tree    tree
	moves   moves
	unsaved bool // there may be idle blocks that the disk has yet to get
	news    news

	hits, misses, evictions uint64
}

// sequence is an open sequence. path[i] is the tree's node for the tokens of block i, for all blocks that Open found
// or Publish added. The sequence's table holds, in each class, the node's own block for it or a twin (see entry).
type sequence struct {
	salt   uint64
	path   []int32
	tables []backend.Table // by class
	waits  uint64          // number of the last move that has to be done before tables are used
	again  int             // blocks of its text that are found if the same prompt comes again
}

// Stats counts blocks of the device by state, of all classes together (Blocks = Free + Cached + Used), and what
// happened since New.
type Stats struct {
	Blocks    int
	Free      int
	Cached    int    // in the prefix tree and used by no open sequence: evicted when blocks run out
	Used      int    // in the table of at least one open sequence, counted once
	Hits      uint64 // prompt tokens that Open found cached
	Misses    uint64 // prompt tokens that Open left to compute
	Evictions uint64 // cached blocks given up for others

	Host, Disk  int    // cached blocks in these tiers
	Out, Back   uint64 // blocks moved to the host's memory, and from there back to the device
	Saved, Read uint64 // blocks written to the disk, and read from there
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
	c.news.forgot()
	nodes := make([]int, len(c.classes))
	for t := range c.free {
		c.free[t] = make([][]int32, len(c.classes))
		for i, class := range c.classes {
			room := class.room(Tier(t))
			for b := room - 1; b >= 0; b-- { // block 0 is granted first
				c.free[t][i] = append(c.free[t][i], int32(b))
			}
			if Tier(t) == Disk { // there may be few
				continue
			}
			nodes[i] += max(room, 0)
		}
	}
	c.moves.reset(c.classes)
	c.seqs = make(map[Seq]*sequence)
	most := 0
	for _, n := range nodes {
		most = max(most, n)
	}
	c.tree = newTree(len(c.classes), most)
	c.tree.keyed, c.unsaved = c.news.watched || c.disk(), false
}

// Open starts a sequence and pins the longest cached prefix of tokens, in whole blocks and short of the last token:
// at least one is left to compute, because sampling needs its logits. A prefix is cached if every class has all
// blocks that the next row sees: those of the whole prefix, or in a class with a window those that reach into it.
// The first cached positions need no computing. Only sequences of the same salt share. Blocks in other tiers are
// fetched: see Coming. If the device has no room for these, nothing is done and the error is ErrFull.
func (c *Cache) Open(id Seq, salt uint64, tokens []int32) (cached int, err error) {
	if cached, err = c.hold(id, salt, tokens); err != nil {
		return 0, err
	}
	c.hits += uint64(cached)
	c.misses += uint64(len(tokens) - cached)
	return cached, nil
}

// hold is Open, but for the counters.
func (c *Cache) hold(id Seq, salt uint64, tokens []int32) (cached int, err error) {
	if c.seqs[id] != nil {
		return 0, fmt.Errorf("sequence %d is already open: close it first", id)
	}
	s := &sequence{salt: salt, tables: make([]backend.Table, len(c.classes))}
	s.again = max(len(tokens)-1, 0) / backend.BlockSize
	s.path = c.known(salt, tokens)
	s.path = s.path[:c.complete(s.path)]
	cached = len(s.path) * backend.BlockSize
	c.begin(s, cached)
	if err := c.fits(id, s); err != nil {
		return 0, err
	}
	for _, n := range s.path {
		c.tree.node(n).paths++
	}
	c.fetch(s)
	for i := range s.tables {
		for _, n := range s.path[s.tables[i].First:] {
			c.put(s, i, c.tree.at(i, n).block)
		}
	}
	c.seqs[id] = s
	return cached, nil
}

// Cached is how many of a prompt's tokens a sequence that opened now would find, as far as there is room.
func (c *Cache) Cached(salt uint64, tokens []int32) int {
	return c.complete(c.known(salt, tokens)) * backend.BlockSize
}

// begin has a sequence's tables begin with the first block that the row at a position sees.
func (c *Cache) begin(s *sequence, pos int) {
	for i, class := range c.classes {
		s.tables[i].First = class.first(pos)
	}
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
		free, idle := len(c.free[Device][i]), c.tree.idle[Device][i].length
		if n := c.wants(s, i, end, soon); n > free+idle {
			return fmt.Errorf("grow sequence %d to %d positions by %d blocks of class %d: %d free and %d cached of %d: %w",
				id, end, n, i, free, idle, c.classes[i].Blocks, ErrFull)
		}
	}
	for i := range c.classes {
		for range c.wants(s, i, end, soon) {
			b, _ := c.take(Device, i)
			c.put(s, i, b)
		}
	}
	return nil
}

// wants is how many blocks of a class a sequence lacks: see Grow.
func (c *Cache) wants(s *sequence, class, end, soon int) int {
	t := &s.tables[class]
	if c.classes[class].Window > 0 {
		end = min(end, soon)
	}
	return max(0, backend.BlocksFor(end)-t.First-len(t.Blocks))
}

// put appends a block to a sequence's table of a class. The sequence waits for moves that still read or write the
// block.
func (c *Cache) put(s *sequence, class int, b int32) {
	s.tables[class].Blocks = append(s.tables[class].Blocks, b)
	s.waits = max(s.waits, c.moves.last[Device][class][b])
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
			c.release(s, i, t.First+at, t.Blocks[at], true)
		}
	}
	for i := len(s.path) - 1; i >= 0; i-- {
		c.tree.node(s.path[i]).paths--
		c.tree.prune(s.path[i])
	}
	return nil
}

// release ends a sequence's use of block b, which is block number at of its text. seen says that the sequence's next
// row sees it, or the first row that the same prompt would leave to compute.
func (c *Cache) release(s *sequence, class, at int, b int32, seen bool) {
	if at < len(s.path) {
		e := c.tree.at(class, s.path[at])
		was := e.block
		if c.tree.release(class, s.path[at], b, seen) {
			c.unsaved = c.unsaved || c.classes[class].Disk > 0
			return // it stays cached
		}
		if e.block != was { // a twin took its place
			e.made = c.moves.made
		}
	}
	c.free[Device][class] = append(c.free[Device][class], b)
}

// Stats says how the blocks are used at the moment.
func (c *Cache) Stats() Stats {
	s := Stats{Hits: c.hits, Misses: c.misses, Evictions: c.evictions, Out: c.moves.out, Back: c.moves.back,
		Saved: c.moves.saved, Read: c.moves.read}
	for i, class := range c.classes {
		s.Blocks += max(class.Blocks, 0)
		s.Free += len(c.free[Device][i])
		s.Cached += c.tree.idle[Device][i].length
		s.Host += c.tree.idle[Host][i].length
		s.Disk += max(class.Disk, 0) - len(c.free[Disk][i])
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
