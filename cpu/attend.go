package cpu

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// attention reads the paged cache. For a row, every block of 64 positions is a softmax of its own; blocks are merged
// in order into stretches of 8, anchored at position 0, and these in order into the whole. How many rows are computed
// together, and whether stretches are computed at once, therefore never shows (laws RowAlone and ChunkFree).
type attention struct {
	m      *model
	args   *ir.AttendArgs
	cache  *cache
	q, out place
	group  int       // query heads of a KV head
	sinks  []float32 // by query head; nil: none
	*split
}

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

// unit is a chunk: some rows of a span for one KV head, over all stretches or over one.
type unit struct {
	span, head int
	row, rows  int // of the span
	stretch    int // −1: all
	group      int // of a split one
	slot       int // of a split one: its first query in partials
}

// group counts the units of a span and head that are not done; the last one merges.
type group struct {
	left     atomic.Int32
	from, to int // units
}

func (b *binder) attention(n *ir.Node) *attention {
	a := n.Attend
	return &attention{
		m: b.m, args: a, cache: &b.m.caches[a.KV], q: b.room.place(n.In[0]), out: b.room.place(n.Out),
		group: a.Heads / a.KVHeads, sinks: b.vector(n.W), split: &b.m.split,
	}
}

// first is the first position that a row at pos sees.
func (a *attention) first(pos int) int {
	if a.args.Window == 0 {
		return 0
	}
	return max(0, pos-a.args.Window+1)
}

const stretchPositions = stretch * backend.BlockSize

func (a *attention) chunks() int {
	a.units, a.claimed = a.units[:0], 0
	slot, rows := 0, tileRows(a.group)
	for i := range a.m.step.Spans {
		span := &a.m.step.Spans[i]
		queries := span.Rows * a.group
		from, to := a.first(span.Pos)/stretchPositions, (span.Pos+span.Rows-1)/stretchPositions
		need := queries * (to - from + 1) * a.args.KVHeads
		if span.Rows <= rows && to > from && slot+need <= splitQueries && a.claimed+a.args.KVHeads <= splitGroups {
			a.divide(i, from, to, slot)
			slot += need
			continue
		}
		// The last rows see most: they come first, so that the chunks become smaller.
		for row := (span.Rows - 1) / rows * rows; row >= 0; row -= rows {
			for h := range a.args.KVHeads {
				a.units = append(a.units, unit{span: i, head: h, row: row, rows: min(rows, span.Rows-row), stretch: -1})
			}
		}
	}
	return len(a.units)
}

// divide makes a unit of every stretch of a span.
func (a *attention) divide(span, from, to, slot int) {
	rows := a.m.step.Spans[span].Rows
	for h := range a.args.KVHeads {
		g := &a.groups[a.claimed]
		g.from = len(a.units)
		for s := from; s <= to; s++ {
			a.units = append(a.units, unit{
				span: span, head: h, rows: rows, stretch: s, group: a.claimed, slot: slot,
			})
			slot += rows * a.group
		}
		g.to = len(a.units)
		g.left.Store(int32(g.to - g.from))
		a.claimed++
	}
}

func (a *attention) run(worker, chunk int) {
	u, t, isa := &a.units[chunk], &a.m.workers[worker].tile, a.m.device.isa
	queries, stride := u.rows*a.group, a.cache.stride
	a.load(t, u)
	if u.stretch >= 0 {
		part := a.partial(u)
		a.stretch(t, u, u.stretch, &part)
		g := &a.groups[u.group]
		if g.left.Add(-1) > 0 {
			return
		}
		t.total.reset(queries)
		for i := g.from; i < g.to; i++ {
			part := a.partial(&a.units[i])
			t.total.merge(isa, &part, 0, queries, stride, t.shrink)
		}
		a.finish(t, u)
		return
	}
	pos := a.m.step.Spans[u.span].Pos + u.row
	t.total.reset(queries)
	for s := a.first(pos) / stretchPositions; s <= (pos+u.rows-1)/stretchPositions; s++ {
		a.stretch(t, u, s, &t.part)
		t.total.merge(isa, &t.part, 0, queries, stride, t.shrink)
	}
	a.finish(t, u)
}

// partial is where a split unit leaves its result.
func (a *attention) partial(u *unit) softmax {
	p, n, stride := &a.partials, u.rows*a.group, a.cache.stride
	return softmax{
		acc: p.acc[u.slot*stride:][:n*stride], top: p.top[u.slot:][:n], sum: p.sum[u.slot:][:n],
	}
}

// load gathers the queries of a unit, heads of a row side by side, and scales them.
func (a *attention) load(t *tile, u *unit) {
	n := a.group * a.args.KDim
	for i := range u.rows {
		q := a.m.at(&a.q, a.m.step.Spans[u.span].Row+u.row+i)
		a.m.device.isa.Scale(t.q[i*n:][:n], q[u.head*n:][:n], a.args.Scale)
	}
}

// stretch computes the softmax of all queries of a unit over one stretch of positions.
func (a *attention) stretch(t *tile, u *unit, s int, to *softmax) {
	to.reset(u.rows * a.group)
	span := &a.m.step.Spans[u.span]
	pos := span.Pos + u.row
	from := max(s*stretch, a.first(pos)/backend.BlockSize)
	for b := from; b < (s+1)*stretch && b*backend.BlockSize < pos+u.rows; b++ {
		a.block(t, u, b, pos, int(span.Table[b]), to)
	}
}

// block adds one block of positions for those rows of a unit that see some of it; pos is the position of row 0.
func (a *attention) block(t *tile, u *unit, b, pos, at int, to *softmax) {
	first := b * backend.BlockSize
	r0, r1 := max(0, first-pos), u.rows
	if w := a.args.Window; w > 0 {
		r1 = min(r1, first+backend.BlockSize-1+w-pos)
	}
	if r0 >= r1 {
		return
	}
	isa, c, n := a.m.device.isa, a.cache, (r1-r0)*a.group
	head := at*c.KVHeads + u.head
	scores := t.scores[:n*backend.BlockSize]
	c.scores(isa, t, t.q[r0*a.group*c.KDim:], n, head)
	if a.args.SoftCap != 0 {
		isa.SoftCap(scores, scores, a.args.SoftCap)
	}
	// Of the union of what the rows see, a row takes its own part: scores outside become −∞, weights 0.
	lo, hi := max(first, a.first(pos+r0))-first, min(backend.BlockSize, pos+r1-first)
	for i := range n {
		row := (*[backend.BlockSize]float32)(scores[i*backend.BlockSize:])
		p := pos + r0 + i/a.group
		mask(row, max(0, a.first(p)-first), min(backend.BlockSize, p+1-first))
		t.block.top[i], t.block.sum[i] = isa.SoftMax(row)
		if sum := t.block.sum[i]; sum-sum != 0 || t.block.top[i]-t.block.top[i] != 0 {
			a.m.fail(fmt.Errorf("row %d: attention: its scores are not finite: the weights or an earlier result are broken",
				a.m.step.Spans[u.span].Row+u.row+r0+i/a.group))
			return
		}
	}
	c.values(isa, t, n, head, lo, hi, a.next(u, b)*c.KVHeads+u.head)
	to.merge(isa, &t.block, r0*a.group, r1*a.group, c.stride, t.shrink)
}

// mask makes the scores outside [lo, hi) −∞.
func mask(row *[backend.BlockSize]float32, lo, hi int) {
	for i := range lo {
		row[i] = float32(math.Inf(-1))
	}
	for i := hi; i < len(row); i++ {
		row[i] = float32(math.Inf(-1))
	}
}

// next is the KV block that a unit reads after position block b, or a block that it does not: any will do at the end.
func (a *attention) next(u *unit, b int) int {
	table := a.m.step.Spans[u.span].Table
	if u.stretch < 0 || (b+1)%stretch != 0 {
		b = min(b+1, len(table)-1)
	}
	return int(table[b])
}

// finish writes the result of a unit.
func (a *attention) finish(t *tile, u *unit) {
	d := a.args.VDim
	if a.sinks != nil {
		t.total.sink(a.m.device.isa, a.sinks[u.head*a.group:][:a.group], t.shrink[:u.rows*a.group])
	}
	for i := range u.rows * a.group {
		r, h := a.m.step.Spans[u.span].Row+u.row+i/a.group, u.head*a.group+i%a.group
		out := a.m.at(&a.out, r)[h*d:][:d]
		a.m.device.isa.Scale(out, t.total.acc[i*a.cache.stride:], 1/t.total.sum[i])
	}
}
