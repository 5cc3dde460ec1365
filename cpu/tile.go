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
	out    []float32 // [queries][stride], of one block, with
	tops   []float32 // their largest scores
	sums   []float32 // and sums of weights
	wide   []float32 // K or V of a block, widened
	part   softmax   // of a stretch
	total  softmax
}

// shape is the size of the largest tile that a program needs.
type shape struct{ queries, dim, stride int }

// tileQueries is the number of queries of a tile, where a group has no more heads: they share the reading of K and V,
// and their scores fit the nearest cache.
const tileQueries = 32

// tileRows is the number of rows of the step in a tile, for groups of so many heads.
func tileRows(group int) int { return max(1, tileQueries/group) }

func tileShape(p *ir.Bound) (s shape) {
	for i := range p.Segments {
		for _, n := range p.Segments[i].Nodes {
			if n.Op != ir.Attend {
				continue
			}
			group := n.Attend.Heads / n.Attend.KVHeads
			s.queries = max(s.queries, group*tileRows(group))
			s.dim = max(s.dim, n.Attend.KDim)
			s.stride = max(s.stride, (n.Attend.VDim+vec.Lanes-1)&^(vec.Lanes-1))
		}
	}
	return s
}

func (s shape) floats() int {
	return s.queries*(s.dim+backend.BlockSize+3*(s.stride+2)) + backend.BlockSize*max(s.dim, s.stride)
}

// carve cuts a tile from memory of floats() values.
func (s shape) carve(memory []float32) (t tile) {
	cut := cutter(memory)
	t.q, t.scores, t.out = cut(s.queries*s.dim), cut(s.queries*backend.BlockSize), cut(s.queries*s.stride)
	t.tops, t.sums = cut(s.queries), cut(s.queries)
	t.wide = cut(backend.BlockSize * max(s.dim, s.stride))
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

// add merges the positions after those of s for query i.
func (s *softmax) add(isa vec.ISA, i int, top, sum float32, out []float32) {
	acc := s.acc[i*len(out):][:len(out)]
	switch old := s.top[i]; {
	case s.empty(i):
		copy(acc, out)
		s.top[i], s.sum[i] = top, sum
	case top <= old:
		w := isa.Exp(top - old)
		isa.Merge(acc, out, 1, w)
		s.sum[i] += float32(sum * w)
	default:
		w := isa.Exp(old - top)
		isa.Merge(acc, out, w, 1)
		s.top[i], s.sum[i] = top, float32(s.sum[i]*w)+sum
	}
}

// merge adds all of o, for so many queries.
func (s *softmax) merge(isa vec.ISA, o *softmax, queries, stride int) {
	for i := range queries {
		if !o.empty(i) {
			s.add(isa, i, o.top[i], o.sum[i], o.acc[i*stride:][:stride])
		}
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
