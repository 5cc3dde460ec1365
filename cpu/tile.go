package cpu

import (
	"math"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// tile is what attention needs for some queries that share a KV head: rows of the step times heads of the group.
type tile struct {
	q      []float32 // [queries][KDim], scaled
	scores []float32 // [queries][64], then the weights of the positions
	some   []float32 // [queries][64]: scores of some features
	wide   []float32 // K or V of a block, widened
	shrink []float32 // [queries]
	block  softmax   // of those queries that see some of the block, from 0 on
	part   softmax   // of a stretch
	total  softmax
	after  int // the head that is read after those of the unit
}

// shape is the size of the largest tile that a program needs.
type shape struct{ queries, dim, stride, kvHeads int }

// tileQueries is the number of queries of a tile, where a group has no more heads: they share the reading of K and V,
// and their scores fit the nearest cache.
const tileQueries = 128

// tileRows is the number of rows of the step in a tile, for groups of so many heads.
func tileRows(group int) int { return max(1, tileQueries/group) }

func tileShape(p *ir.Bound) (s shape) {
	for i := range p.Segments {
		for _, n := range p.Segments[i].Nodes {
			if n.Op != ir.Attend {
				continue
			}
			// Queries in whole cache lines keep all that carve cuts aligned.
			group := n.Attend.Heads / n.Attend.KVHeads
			s.queries = max(s.queries, align(group*tileRows(group)))
			s.dim, s.kvHeads = max(s.dim, n.Attend.KDim), max(s.kvHeads, n.Attend.KVHeads)
			s.stride = max(s.stride, (n.Attend.VDim+vec.Lanes-1)&^(vec.Lanes-1))
		}
	}
	return s
}

func (s shape) floats() int {
	return s.queries*(s.dim+2*backend.BlockSize+3*(s.stride+2)+1) + backend.BlockSize*max(s.dim, s.stride)
}

// carve cuts a tile from memory of floats() values.
func (s shape) carve(memory []float32) (t tile) {
	cut := cutter(memory)
	t.q, t.scores, t.shrink = cut(s.queries*s.dim), cut(s.queries*backend.BlockSize), cut(s.queries)
	t.some = cut(s.queries * backend.BlockSize)
	t.wide = cut(backend.BlockSize * max(s.dim, s.stride))
	t.block = newSoftmax(s.queries, s.stride, cut)
	t.part, t.total = newSoftmax(s.queries, s.stride, cut), newSoftmax(s.queries, s.stride, cut)
	return t
}

// softmax is attention over some of the positions, by query: Σ e^(s−top)·v and Σ e^(s−top), with top the largest score
// s. Sets of positions are merged in the order of positions; top is −∞ while there are none.
type softmax struct {
	acc      []float32 // [queries][stride]
	top, sum []float32
}

func newSoftmax(queries, stride int, cut func(n int) []float32) softmax {
	return softmax{acc: cut(queries * stride), top: cut(queries), sum: cut(queries)}
}

func (s *softmax) reset(queries int) {
	for i := range queries {
		s.top[i] = float32(math.Inf(-1))
	}
}

// empty says whether query i has seen no position.
func (s *softmax) empty(i int) bool { return math.IsInf(float64(s.top[i]), -1) }

// none says whether none of the queries [from, to) has seen a position.
func (s *softmax) none(from, to int) bool {
	for i := from; i < to; i++ {
		if !s.empty(i) {
			return false
		}
	}
	return true
}

// merge adds positions after those of s for queries [from, to): o has their results from its first row on. shrink is
// memory for as many values.
func (s *softmax) merge(isa vec.ISA, o *softmax, from, to, stride int, shrink []float32) {
	if s.none(from, to) {
		copy(s.acc[from*stride:to*stride], o.acc)
		copy(s.top[from:to], o.top)
		copy(s.sum[from:to], o.sum)
		return
	}
	shrink = shrink[:to-from]
	for i := range shrink {
		// The part with the smaller top shrinks, the other stays as it is: e⁰ is 1.
		shrink[i] = min(s.top[from+i], o.top[i]) - max(s.top[from+i], o.top[i])
	}
	isa.Exp(shrink, shrink)
	for i, w := range shrink {
		q := from + i
		acc, out := s.acc[q*stride:][:stride], o.acc[i*stride:][:stride]
		switch {
		case o.empty(i):
		case s.empty(q):
			copy(acc, out)
			s.top[q], s.sum[q] = o.top[i], o.sum[i]
		case o.top[i] <= s.top[q]:
			isa.Merge(acc, out, 1, w)
			s.sum[q] += float32(o.sum[i] * w)
		default:
			isa.Merge(acc, out, w, 1)
			s.top[q], s.sum[q] = o.top[i], float32(s.sum[q]*w)+o.sum[i]
		}
	}
}

// sink adds one more score to every query, that of its head, whose value is 0: it shows in the sums only. shrink is
// memory for a value of each query.
func (s *softmax) sink(isa vec.ISA, sinks, shrink []float32) {
	for i := range shrink {
		shrink[i] = sinks[i%len(sinks)] - s.top[i]
	}
	isa.Exp(shrink, shrink)
	for i, e := range shrink {
		s.sum[i] += e
	}
}

// cutter gives memory away piece by piece.
func cutter(memory []float32) func(n int) []float32 {
	return func(n int) []float32 {
		part := memory[:n:n]
		memory = memory[n:]
		return part
	}
}
