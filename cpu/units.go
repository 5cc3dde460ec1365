package cpu

import (
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
)

// split is how attention is spread over workers in the running step. Layers use the same memory one after another.
type split struct {
	units    []unit
	groups   []group // splitGroups
	claimed  int     // groups in use
	partials softmax // what units of one stretch leave, by query
}

// stretch is the number of blocks that are merged first: the grain in which a single row is split over workers.
const stretch = 8

// Splitting is for few rows; more than these are work enough as they are.
const (
	splitGroups  = 64
	splitQueries = 2048 // of all stretches
)

// A single row is computed for a few heads at once, as long as there are enough units for all workers.
const (
	headsTogether  = 8 // query heads
	unitsPerWorker = 4
)

// unit is a chunk: some rows of a span for one KV head, or one row for several, over all stretches or over one. Its
// queries are rows times heads of the group; those of one KV head lie together.
type unit struct {
	span        int
	head, heads int // KV heads
	row, rows   int // of the span
	stretch     int // −1: all
	group       int // of a split one
	slot        int // of a split one: its first query in partials
}

// group counts the units of a span and its heads that are not done; the last one merges.
type group struct {
	left     atomic.Int32
	from, to int // units
}

const stretchPositions = stretch * backend.BlockSize

func (a *attention) chunks() int {
	a.units, a.claimed = a.units[:0], 0
	slot, rows := 0, a.store.short
	for i := range a.m.step.Spans {
		span := &a.m.step.Spans[i]
		from, to := a.first(span.Pos)/stretchPositions, (span.Pos+span.Rows-1)/stretchPositions
		need := span.Rows * a.group * (to - from + 1) * a.args.KVHeads
		split := span.Rows <= rows && to > from && slot+need <= splitQueries && a.claimed+a.args.KVHeads <= splitGroups
		// The last rows see most: they come first, so that the chunks become smaller.
		for row := (span.Rows - 1) / rows * rows; row >= 0; row -= rows {
			u := unit{span: i, row: row, rows: min(rows, span.Rows-row), stretch: -1}
			for u.heads = a.together(u.rows); u.head < a.args.KVHeads; u.head += u.heads {
				u.heads = min(u.heads, a.args.KVHeads-u.head)
				if split {
					slot = a.divide(u, from, to, slot)
				} else {
					a.units = append(a.units, u)
				}
			}
		}
	}
	return len(a.units)
}

// together is the number of KV heads of a unit of so many rows.
func (a *attention) together(rows int) int {
	if rows > 1 {
		return 1
	}
	each := a.args.KVHeads * len(a.m.step.Spans) / (unitsPerWorker * a.m.device.pool.size())
	return max(1, min(headsTogether/a.group, each))
}

// divide makes a unit of every stretch of one, and returns the first free slot.
func (a *attention) divide(u unit, from, to, slot int) int {
	u.group = a.claimed
	a.claimed++
	g := &a.groups[u.group]
	g.from = len(a.units)
	for u.stretch = from; u.stretch <= to; u.stretch++ {
		u.slot = slot
		a.units = append(a.units, u)
		slot += a.queries(&u)
	}
	g.to = len(a.units)
	g.left.Store(int32(g.to - g.from))
	return slot
}

// queries is the number of queries of a unit.
func (a *attention) queries(u *unit) int { return u.rows * u.heads * a.group }

// view is what the rows [r0, r1) of a unit see of a position block, some of it each.
type view struct {
	block   int
	r0, r1  int
	head    int // the unit's first one in the cache
	queries int // of one KV head; if the unit has several heads, it has one row
	lo, hi  int // positions of the block that some row sees
}

// view is what a unit sees of position block b; pos is the position of its row 0.
func (a *attention) view(u *unit, b, pos int) view {
	first := b * backend.BlockSize
	r0, r1 := max(0, first-pos), u.rows
	if w := a.args.Window; w > 0 {
		r1 = min(r1, first+backend.BlockSize-1+w-pos)
	}
	return view{
		block: b, r0: r0, r1: r1, queries: (r1 - r0) * a.group,
		head: a.head(u, b),
		lo:   max(0, a.first(pos+r0)-first), hi: min(backend.BlockSize, pos+r1-first),
	}
}

// next is the head that is read after position block b of a unit.
func (a *attention) next(t *tile, u *unit, b int) int {
	span := &a.m.step.Spans[u.span]
	if last := (span.Pos + u.row + u.rows - 1) / backend.BlockSize; b == last || u.stretch >= 0 && b%stretch == stretch-1 {
		return t.after
	}
	return a.head(u, b+1)
}

// firstHead is the head that a unit reads first.
func (a *attention) firstHead(u *unit) int {
	span := &a.m.step.Spans[u.span]
	b := max(u.stretch*stretch, a.first(span.Pos+u.row)/backend.BlockSize)
	return a.head(u, b)
}

// head is the first head of a unit in position block b.
func (a *attention) head(u *unit, b int) int {
	return int(a.m.step.Spans[u.span].Tables[a.cache.Class].At(b))*a.cache.KVHeads + u.head
}
