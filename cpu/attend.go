package cpu

import (
	"fmt"
	"math"

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
	store  *storeOp
	q, out place
	group  int       // query heads of a KV head
	sinks  []float32 // by query head; nil: none
	*split
}

func (b *binder) attention(n *ir.Node) *attention {
	a := n.Attend
	return &attention{
		m: b.m, args: a, cache: &b.m.caches[a.KV], store: b.store(n), q: b.room.place(n.In[0]), out: b.room.place(n.Out),
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

func (a *attention) run(worker, chunk int) {
	u, t, isa := &a.units[chunk], &a.m.workers[worker].tile, a.m.device.isa
	queries, stride := a.queries(u), a.cache.stride
	// Units are claimed in order, so the one that this worker claims next is most likely this one.
	t.after = a.firstHead(&a.units[min(chunk+a.m.device.pool.size(), len(a.units)-1)])
	a.load(t, u)
	if u.stretch >= 0 {
		part := a.partial(u)
		a.stretch(worker, u, u.stretch, &part)
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
		a.stretch(worker, u, s, &t.part)
		t.total.merge(isa, &t.part, 0, queries, stride, t.shrink)
	}
	a.finish(t, u)
}

// partial is where a split unit leaves its result.
func (a *attention) partial(u *unit) softmax {
	p, n, stride := &a.partials, a.queries(u), a.cache.stride
	return softmax{
		acc: p.acc[u.slot*stride:][:n*stride], top: p.top[u.slot:][:n], sum: p.sum[u.slot:][:n],
	}
}

// load gathers the queries of a unit, heads of a row side by side, and scales them.
func (a *attention) load(t *tile, u *unit) {
	n := u.heads * a.group * a.args.KDim
	for i := range u.rows {
		q := a.m.at(&a.q, a.m.step.Spans[u.span].Row+u.row+i)
		a.m.device.isa.Scale(t.q[i*n:][:n], q[u.head*a.group*a.args.KDim:][:n], a.args.Scale)
	}
}

// stretch computes the softmax of all queries of a unit over one stretch of positions.
func (a *attention) stretch(worker int, u *unit, s int, to *softmax) {
	to.reset(a.queries(u))
	span := &a.m.step.Spans[u.span]
	pos := span.Pos + u.row
	from := max(s*stretch, a.first(pos)/backend.BlockSize)
	for b := from; b < (s+1)*stretch && b*backend.BlockSize < pos+u.rows; b++ {
		v := a.view(u, b, pos)
		if v.r0 >= v.r1 {
			continue
		}
		if err := a.block(worker, u, &v, to); err != nil {
			a.m.fail(err)
			return
		}
	}
}

// block adds one block of positions for those rows of a unit that see some of it.
func (a *attention) block(worker int, u *unit, v *view, to *softmax) error {
	if err := a.weigh(worker, u, v); err != nil {
		return err
	}
	t, isa, c := &a.m.workers[worker].tile, a.m.device.isa, a.cache
	for h := range u.heads {
		ahead := c.value(v.head+h+1, v.lo)
		if h == u.heads-1 {
			ahead = c.key(a.next(t, u, v.block))
		}
		c.values(isa, t, h*v.queries, v.queries, v.head+h, v.lo, v.hi, ahead)
	}
	from := v.r0 * a.group
	to.merge(isa, &t.block, from, from+u.heads*v.queries, c.stride, t.shrink)
	return nil
}

// weigh computes the weights of the block's positions, their sums and the largest scores.
func (a *attention) weigh(worker int, u *unit, v *view) error {
	t, isa, c := &a.m.workers[worker].tile, a.m.device.isa, a.cache
	for h := range u.heads {
		if err := a.append(worker, u, u.head+h, v.block); err != nil {
			return err
		}
		ahead := c.key(v.head + h + 1)
		if h == u.heads-1 {
			ahead = c.value(v.head, v.lo)
		}
		c.scores(isa, t, t.q[v.r0*a.group*c.KDim:], h*v.queries, v.queries, v.head+h, v.hi, ahead)
	}
	queries := u.heads * v.queries
	scores := t.scores[:queries*backend.BlockSize]
	if a.args.SoftCap != 0 {
		isa.SoftCap(scores, scores, a.args.SoftCap)
	}
	span, first := &a.m.step.Spans[u.span], v.block*backend.BlockSize
	for i := range queries {
		row := (*[backend.BlockSize]float32)(scores[i*backend.BlockSize:])
		r := u.row + v.r0 + i%v.queries/a.group
		// Of what the rows see together a row takes its own part: scores outside become −∞, weights 0.
		pos := span.Pos + r
		mask(row, max(0, a.first(pos)-first), min(backend.BlockSize, pos+1-first))
		t.block.top[i], t.block.sum[i] = isa.SoftMax(row)
		if sum := t.block.sum[i]; sum-sum != 0 || t.block.top[i]-t.block.top[i] != 0 {
			return fmt.Errorf("row %d: attention: its scores are not finite: the weights or an earlier result are broken",
				span.Row+r)
		}
	}
	return nil
}

// append stores K and V of a head in position block b, those of the unit's rows that are in it, if that was left to
// attention: no other unit reads them.
func (a *attention) append(worker int, u *unit, head, b int) error {
	span := &a.m.step.Spans[u.span]
	if span.Rows > a.store.short {
		return nil
	}
	for r := max(0, b*backend.BlockSize-span.Pos); r < min(span.Rows, (b+1)*backend.BlockSize-span.Pos); r++ {
		if err := a.store.head(a.m, worker, span.Row+r, head); err != nil {
			return fmt.Errorf("row %d: %w", span.Row+r, err)
		}
	}
	return nil
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

// finish writes the result of a unit.
func (a *attention) finish(t *tile, u *unit) {
	d, n := a.args.VDim, a.queries(u)
	if a.sinks != nil {
		t.total.sink(a.m.device.isa, a.sinks[u.head*a.group:][:u.heads*a.group], t.shrink[:n])
	}
	for i := range n {
		r := a.m.step.Spans[u.span].Row + u.row + i/a.group%u.rows
		h := u.head*a.group + i/(u.rows*a.group)*a.group + i%a.group
		out := a.m.at(&a.out, r)[h*d:][:d]
		a.m.device.isa.Scale(out, t.total.acc[i*a.cache.stride:], 1/t.total.sum[i])
	}
}
