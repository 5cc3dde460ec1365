package cpu

import (
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// queries is a worker's memory for queries that share a KV head: rows of the step times the query heads that read it.
type queries struct {
	scaled  []float32 // [queries][KDim], times the scale
	scores  []float32 // [queries][64], then the weights of the positions
	some    []float32 // [queries][64]: scores of some features
	wide    []float32 // K or V of a block, as float32
	coded   []byte    // [queries] as prepared for K in codes
	weighed []byte    // [queries] weights of the positions, as prepared for V in codes
	first   int       // first of the queries that the product is computed for
	rows    []float32 // K or V of a block, decoded, in a form that has no kernels
	shrink  []float32 // [queries]
	block   softmax   // results for one block, of those queries that see some of it
	part    softmax   // results for a stretch
	total   softmax
	product vec.Product // the current product: here, so that passing it to a form allocates nothing
	after   int         // the head that is read after those of the chunk
}

// queryShape is the size of the largest queries that a program needs.
type queryShape struct {
	count, dim, stride, kvHeads int
	coded, weighed              int // of a query, in float32
}

// queriesTogether is how many queries of a KV head are computed together, unless one row has more: they share the
// reading of K and V, and their scores fit the L1 cache.
const queriesTogether = 128

// rowsTogether is how many rows of the step have these queries, for so many query heads of a KV head.
func rowsTogether(headsPerKV int) int { return max(1, queriesTogether/headsPerKV) }

func shapeOfQueries(p *ir.Bound, caches []*cache) (s queryShape) {
	for i := range p.Segments {
		for _, n := range p.Segments[i].Nodes {
			if n.Op != ir.Attend {
				continue
			}
			// Queries fill whole cache lines, so that everything taken from the arena is aligned.
			headsPerKV := n.Attend.Heads / n.Attend.KVHeads
			s.count = max(s.count, align(headsPerKV*rowsTogether(headsPerKV)))
			s.dim, s.kvHeads = max(s.dim, n.Attend.KDim), max(s.kvHeads, n.Attend.KVHeads)
			s.stride = max(s.stride, (n.Attend.VDim+vec.Lanes-1)&^(vec.Lanes-1))
		}
	}
	for _, c := range caches {
		if c != nil {
			s.coded, s.weighed = max(s.coded, (c.keys.prepared()+3)/4), max(s.weighed, (c.values.prepared()+3)/4)
		}
	}
	return s
}

func (s queryShape) floats() int {
	each := s.dim + 2*backend.BlockSize + 3*(s.stride+2) + 1 + s.coded + s.weighed
	return s.count*each + 2*backend.BlockSize*max(s.dim, s.stride)
}

// take returns queries in memory of an arena, floats() values of it.
func (s queryShape) take(a *arena) (q queries) {
	q.scaled, q.scores, q.shrink = a.take(s.count*s.dim), a.take(s.count*backend.BlockSize), a.take(s.count)
	q.some = a.take(s.count * backend.BlockSize)
	q.wide = a.take(backend.BlockSize * max(s.dim, s.stride))
	q.coded, q.weighed = bytesOf(a.take(s.count*s.coded)), bytesOf(a.take(s.count*s.weighed))
	q.rows = a.take(backend.BlockSize * max(s.dim, s.stride))
	q.block = newSoftmax(s.count, s.stride, a)
	q.part, q.total = newSoftmax(s.count, s.stride, a), newSoftmax(s.count, s.stride, a)
	return q
}
