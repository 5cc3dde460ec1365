package cpu

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// attention reads the paged cache. For a row, every block of 64 positions has a softmax of its own; blocks are merged
// in order into stretches of 8, anchored at position 0, and stretches in order into the whole. So results do not depend
// on how many rows are computed together, or on whether stretches are computed in parallel (laws RowAlone and
// ChunkFree).
type attention struct {
	ex         *execution
	args       *ir.AttendArgs
	cache      *cache
	store      *storeOp // nil: another layer stores the rows
	rows       int      // most rows of a span that a chunk computes for a KV head
	q, out     place
	headsPerKV int       // query heads of each
	sinks      []float32 // by query head; nil: none
	slopes     []float32 // by query head: see ir.AttendArgs.Slope; nil: scores do not fall
	biases     *biases   // nil: scores have none by distance
	split      *split
	sealing    *sealing // nil: the format seals no blocks
}

// slopesOf are the slopes of query heads; nil: scores do not fall.
func slopesOf(a *ir.AttendArgs) (all []float32) {
	if a.Alibi == 0 {
		return nil
	}
	for h := range a.Heads {
		all = append(all, float32(a.Slope(h)))
	}
	return all
}

// biases are added to scores by distance. Weights may come after they are bound.
type biases struct {
	values []float32 // [bucket][query head]
	at     []int     // by distance, from −Farthest: where the values of its bucket begin
}

// biasesOf are those of a node whose B has these values; nil: it has none.
func biasesOf(a *ir.AttendArgs, values []float32) *biases {
	if a.Buckets == 0 {
		return nil
	}
	b := &biases{values, make([]int, 2*a.Farthest+1)}
	for i := range b.at {
		b.at[i] = a.Bucket(i-a.Farthest) * a.Heads
	}
	return b
}

// end is the position after the last one that a row at pos of a span sees.
func (a *attention) end(span *backend.Span, pos int) int {
	_, end := a.seen(span, pos)
	return end
}

// first is the first position that a row at pos of a span sees.
func (a *attention) first(span *backend.Span, pos int) int {
	first, _ := a.seen(span, pos)
	return first
}

// seen is the positions that a row at pos of a span sees: none if the end is at most the first.
func (a *attention) seen(span *backend.Span, pos int) (first, end int) {
	if a.args.Both {
		return a.args.First(pos), a.args.Last(pos, span.Pos+span.Rows-1) + 1
	}
	return a.args.Side.Within(span.Heard, pos, a.args.First(pos), span.Last(pos-span.Pos)+1)
}

func (a *attention) run(worker, chunk int) {
	c, q, isa := &a.split.chunks[chunk], &a.ex.workers[worker].queries, a.ex.device.isa
	n, stride := a.count(c), a.cache.stride
	// Chunks are claimed in order, so the one that this worker claims next is most likely this one.
	q.after = a.firstHead(&a.split.chunks[min(chunk+a.ex.device.pool.size(), len(a.split.chunks)-1)])
	a.load(q, c)
	if c.stretch >= 0 {
		part := a.partial(c)
		a.stretch(worker, c, c.stretch, &part)
		m := &a.split.merges[c.merge]
		if m.left.Add(-1) > 0 {
			return
		}
		q.total.reset(n)
		for i := m.from; i < m.to; i++ {
			part := a.partial(&a.split.chunks[i])
			q.total.merge(isa, &part, 0, n, stride, q.shrink)
		}
		a.finish(q, c)
		return
	}
	span := &a.ex.step.Spans[c.span]
	pos := span.Pos + c.row
	q.total.reset(n)
	for s := a.first(span, pos) / stretchPositions; s <= (a.end(span, pos+c.rows-1)-1)/stretchPositions; s++ {
		a.stretch(worker, c, s, &q.part)
		q.total.merge(isa, &q.part, 0, n, stride, q.shrink)
	}
	a.finish(q, c)
}

// partial is the memory for the result of a chunk that computes one stretch.
func (a *attention) partial(c *attendChunk) softmax {
	p, n, stride := &a.split.partials, a.count(c), a.cache.stride
	return softmax{
		acc: p.acc[c.slot*stride:][:n*stride], top: p.top[c.slot:][:n], sum: p.sum[c.slot:][:n],
	}
}

// load gathers the queries of a chunk, heads of a row side by side, and scales them.
func (a *attention) load(q *queries, c *attendChunk) {
	n := c.heads * a.headsPerKV * a.args.KDim
	for i := range c.rows {
		x := a.ex.at(&a.q, a.ex.step.Spans[c.span].Row+c.row+i)
		a.ex.device.isa.Scale(q.scaled[i*n:][:n], x[c.head*a.headsPerKV*a.args.KDim:][:n], a.args.Scale)
	}
	a.cache.keys.prepare(a.ex.device.isa, q, a.count(c))
}

// stretch computes the softmax of all queries of a chunk over one stretch of positions.
func (a *attention) stretch(worker int, c *attendChunk, s int, to *softmax) {
	to.reset(a.count(c))
	span := &a.ex.step.Spans[c.span]
	pos := span.Pos + c.row
	from, end := max(s*stretch, a.first(span, pos)/backend.BlockSize), a.end(span, pos+c.rows-1)
	for b := from; b < (s+1)*stretch && b*backend.BlockSize < end; b++ {
		r0, r1 := a.seeing(c, b, pos)
		open := r1 // rows before it are in the block themselves
		if a.cache.open != a.cache {
			open = min(max(r0, (b+1)*backend.BlockSize-pos), r1)
		}
		for _, part := range [2]view{{cache: a.cache.open, r0: r0, r1: open}, {cache: a.cache, r0: open, r1: r1}} {
			if part.r0 >= part.r1 {
				continue
			}
			v := a.view(c, &part, b, pos)
			if err := a.block(worker, c, &v, to); err != nil {
				a.ex.fail(err)
				return
			}
		}
	}
}

// block adds one block of positions for those rows of a chunk that see some of it.
func (a *attention) block(worker int, c *attendChunk, v *view, to *softmax) error {
	if err := a.weigh(worker, c, v); err != nil {
		return err
	}
	q, isa, kv := &a.ex.workers[worker].queries, a.ex.device.isa, v.cache
	for h := range c.heads {
		ahead := kv.value(v.head + h + 1)
		if h == c.heads-1 {
			ahead = kv.key(a.next(q, c, v.block))
		}
		kv.add(isa, q, h*v.queries, v.queries, v.head+h, v.lo, v.hi, ahead)
	}
	if r := a.cache.values.rotated(); r != nil && kv != a.cache {
		for i := range c.heads * v.queries {
			rotate(isa, r, q.block.acc[i*kv.stride:][:kv.VDim])
		}
	}
	from := v.r0 * a.headsPerKV
	to.merge(isa, &q.block, from, from+c.heads*v.queries, kv.stride, q.shrink)
	return nil
}

// weigh computes the weights of the block's positions, their sums and the largest scores.
func (a *attention) weigh(worker int, c *attendChunk, v *view) error {
	q, isa, kv := &a.ex.workers[worker].queries, a.ex.device.isa, v.cache
	for h := range c.heads {
		if err := a.append(worker, c, c.head+h, v.block); err != nil {
			return err
		}
		ahead := kv.key(v.head + h + 1)
		if h == c.heads-1 {
			ahead = kv.value(v.head)
		}
		kv.scores(isa, q, v.r0*a.headsPerKV+h*v.queries, h*v.queries, v.queries, v.head+h, v.hi, ahead)
	}
	queries := c.heads * v.queries
	scores := q.scores[:queries*backend.BlockSize]
	if a.args.SoftCap != 0 {
		isa.SoftCap(scores, scores, a.args.SoftCap)
	}
	span, first := &a.ex.step.Spans[c.span], v.block*backend.BlockSize
	for i := range queries {
		row := (*[backend.BlockSize]float32)(scores[i*backend.BlockSize:])
		r := c.row + v.r0 + i%v.queries/a.headsPerKV
		// A row sees only a part of what the rows together see: scores outside become −∞, weights 0.
		pos := span.Pos + r
		head := (c.head+i/v.queries)*a.headsPerKV + i%a.headsPerKV
		if a.slopes != nil {
			fall(row, a.slopes[head], pos-first)
		}
		if a.biases != nil {
			a.biases.add(row, head, pos-first)
		}
		lo, hi := max(0, a.first(span, pos)-first), min(backend.BlockSize, a.end(span, pos)-first)
		none := lo >= hi
		if !none {
			mask(row, lo, hi)
			none = a.args.Every > 0 && !a.hide(row, first, hi)
		}
		if none {
			q.block.top[i], q.block.sum[i] = float32(math.Inf(-1)), 0
			clear(row[:])
			continue
		}
		q.block.top[i], q.block.sum[i] = isa.SoftMax(row)
		if sum := q.block.sum[i]; sum-sum != 0 || q.block.top[i]-q.block.top[i] != 0 {
			return fmt.Errorf("row %d: attention: its scores are not finite: the weights or an earlier result are broken",
				span.Row+r)
		}
	}
	return nil
}

// append stores K and V of a head in position block b, for the chunk's rows in that block, if storeOp left that to
// attention: no other chunk reads them.
func (a *attention) append(worker int, c *attendChunk, head, b int) error {
	span := &a.ex.step.Spans[c.span]
	if a.store == nil || span.Rows > a.store.short {
		return nil
	}
	for r := max(0, b*backend.BlockSize-span.Pos); r < min(span.Rows, (b+1)*backend.BlockSize-span.Pos); r++ {
		if err := a.store.head(a.ex, worker, span.Row+r, head); err != nil {
			return fmt.Errorf("row %d: %w", span.Row+r, err)
		}
	}
	return nil
}

// fall lowers scores by their distance from the row's position, which counts from the block's first one.
func fall(row *[backend.BlockSize]float32, slope float32, at int) {
	for i := range row {
		row[i] -= slope * float32(max(i-at, at-i))
	}
}

// add adds the biases of a query head; at is as fall has it.
func (b *biases) add(row *[backend.BlockSize]float32, head, at int) {
	zero := len(b.at) / 2
	for i := range row {
		row[i] += b.values[b.at[min(max(zero+i-at, 0), len(b.at)-1)]+head]
	}
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

// hide makes the scores −∞ of positions that no row sees, of those from first on, and says whether others are left
// before hi.
func (a *attention) hide(row *[backend.BlockSize]float32, first, hi int) (left bool) {
	for i := range row {
		if a.args.Hides(first + i) {
			row[i] = float32(math.Inf(-1))
		} else if i < hi {
			left = true
		}
	}
	return left
}

// finish writes the result of a chunk.
func (a *attention) finish(q *queries, c *attendChunk) {
	d, n := a.args.VDim, a.count(c)
	if a.sinks != nil {
		q.total.sink(a.ex.device.isa, a.sinks[c.head*a.headsPerKV:][:c.heads*a.headsPerKV], q.shrink[:n])
	}
	rotation := a.cache.values.rotated()
	for i := range n {
		if rotation != nil {
			unrotate(a.ex.device.isa, rotation, q.total.acc[i*a.cache.stride:][:d])
		}
		r := a.ex.step.Spans[c.span].Row + c.row + i/a.headsPerKV%c.rows
		h := c.head*a.headsPerKV + i/(c.rows*a.headsPerKV)*a.headsPerKV + i%a.headsPerKV
		out := a.ex.at(&a.out, r)
		sum, top := q.total.sum[i], q.total.top[i]
		if q.total.empty(i) {
			clear(out[h*d:][:d])
		} else {
			a.ex.device.isa.Scale(out[h*d:][:d], q.total.acc[i*a.cache.stride:], 1/sum)
		}
		if a.args.Sums && q.total.empty(i) {
			out[a.args.Heads*d+h] = ir.NoSum
		} else if a.args.Sums {
			out[a.args.Heads*d+h] = float32(float64(top) + math.Log(float64(sum)))
		}
	}
}
