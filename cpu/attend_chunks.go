package cpu

import (
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
)

// split is how the running step's attention is divided over workers. Layers use the same memory one after another.
type split struct {
	chunks   []attendChunk
	merges   []merge // splitMerges
	claimed  int     // merges in use
	partials softmax // results of chunks of one stretch, by query
}

// stretch is the number of blocks that are merged first: a single row is divided over workers at these borders.
const stretch = 8

// Spans of many queries have enough chunks without being divided by stretches.
const (
	splitMerges  = 64
	splitQueries = 2048 // of all stretches
)

// A single row is computed for a few heads at once, as long as there are enough chunks for all workers.
const (
	headsTogether         = 8 // query heads
	attendChunksPerWorker = 4
)

// attendChunk is what a worker claims: some rows of a span for one KV head, or one row for several KV heads, over all
// stretches or one. Its queries are rows times query heads of the KV heads; those of one KV head lie together.
type attendChunk struct {
	span        int
	head, heads int // KV heads
	row, rows   int // of the span
	stretch     int // −1: all
	merge       int // of a chunk of one stretch: its index among the merges
	slot        int // of a chunk of one stretch: its first query in partials
}

// merge counts the unfinished chunks of a span's divided heads; the worker of the last one merges their results.
type merge struct {
	left     atomic.Int32
	from, to int // chunks
}

const stretchPositions = stretch * backend.BlockSize

func (a *attention) chunks() int {
	if a.sealing != nil {
		a.sealing.run()
	}
	a.split.chunks, a.split.claimed = a.split.chunks[:0], 0
	slot, rows := 0, a.rows
	for i := range a.ex.step.Spans {
		span := &a.ex.step.Spans[i]
		from, to := a.first(span, span.Pos)/stretchPositions, (span.Pos+span.Rows-1)/stretchPositions
		need := span.Rows * a.headsPerKV * (to - from + 1) * a.args.KVHeads
		divided := span.Rows <= rows && to > from &&
			slot+need <= splitQueries && a.split.claimed+a.args.KVHeads <= splitMerges
		// The last rows see most: they come first, so that the chunks become smaller.
		for row := (span.Rows - 1) / rows * rows; row >= 0; row -= rows {
			c := attendChunk{span: i, row: row, rows: min(rows, span.Rows-row), stretch: -1}
			for c.heads = a.together(c.rows); c.head < a.args.KVHeads; c.head += c.heads {
				c.heads = min(c.heads, a.args.KVHeads-c.head)
				if divided {
					slot = a.divide(c, from, to, slot)
				} else {
					a.split.chunks = append(a.split.chunks, c)
				}
			}
		}
	}
	return len(a.split.chunks)
}

// together is the number of KV heads of a chunk of so many rows.
func (a *attention) together(rows int) int {
	if rows > 1 {
		return 1
	}
	each := a.args.KVHeads * len(a.ex.step.Spans) / (attendChunksPerWorker * a.ex.device.pool.size())
	return max(1, min(headsTogether/a.headsPerKV, each))
}

// divide makes a chunk for every stretch of c, and returns the first free slot.
func (a *attention) divide(c attendChunk, from, to, slot int) int {
	c.merge = a.split.claimed
	a.split.claimed++
	m := &a.split.merges[c.merge]
	m.from = len(a.split.chunks)
	for c.stretch = from; c.stretch <= to; c.stretch++ {
		c.slot = slot
		a.split.chunks = append(a.split.chunks, c)
		slot += a.count(&c)
	}
	m.to = len(a.split.chunks)
	m.left.Store(int32(m.to - m.from))
	return slot
}

// count is the number of queries of a chunk.
func (a *attention) count(c *attendChunk) int { return c.rows * c.heads * a.headsPerKV }

// view is the part of a position block that rows [r0, r1) of a chunk see; each row sees some of it.
type view struct {
	cache   *cache // that holds the block
	block   int
	r0, r1  int
	head    int // the chunk's first one in the cache
	queries int // per KV head; a chunk of several heads has one row
	lo, hi  int // positions of the block that some row sees
}

// seeing returns the rows of a chunk that see some of position block b; pos is the position of its row 0.
func (a *attention) seeing(c *attendChunk, b, pos int) (r0, r1 int) {
	first := b * backend.BlockSize
	r0, r1 = max(0, first-pos), c.rows
	for span := &a.ex.step.Spans[c.span]; r0 > 0 && a.end(span, pos+min(r0, c.rows)-1) > first; {
		r0 = min(r0, c.rows) - 1 // it sees some that come after it
	}
	if a.args.Window > 0 || a.args.Reach > 0 {
		r1 = min(r1, a.args.LastRow(first+backend.BlockSize-1)+1-pos)
	}
	return r0, r1
}

// view returns what some rows of a chunk see of position block b, in a cache.
func (a *attention) view(c *attendChunk, rows *view, b, pos int) view {
	first, span := b*backend.BlockSize, &a.ex.step.Spans[c.span]
	return view{
		cache: rows.cache, block: b, r0: rows.r0, r1: rows.r1, queries: (rows.r1 - rows.r0) * a.headsPerKV,
		head: int(span.Tables[rows.cache.Class].At(b))*rows.cache.KVHeads + c.head,
		lo:   max(0, a.first(span, pos+rows.r0)-first), hi: min(backend.BlockSize, a.end(span, pos+rows.r1-1)-first),
	}
}

// next is the head (block and KV head) that is read after position block b of a chunk.
func (a *attention) next(q *queries, c *attendChunk, b int) int {
	span := &a.ex.step.Spans[c.span]
	last := (a.end(span, span.Pos+c.row+c.rows-1) - 1) / backend.BlockSize
	if b == last || c.stretch >= 0 && b%stretch == stretch-1 {
		return q.after
	}
	return a.head(c, b+1)
}

// firstHead is the head that a chunk reads first.
func (a *attention) firstHead(c *attendChunk) int {
	span := &a.ex.step.Spans[c.span]
	b := max(c.stretch*stretch, a.first(span, span.Pos+c.row)/backend.BlockSize)
	return a.head(c, b)
}

// head is the first head of a chunk in position block b.
func (a *attention) head(c *attendChunk, b int) int {
	return int(a.ex.step.Spans[c.span].Tables[a.cache.Class].At(b))*a.cache.KVHeads + c.head
}
