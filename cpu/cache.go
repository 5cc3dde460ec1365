package cpu

import (
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// cache is K and V of one attention layer, [block][KV head] of two small matrices: K transposed, [KDim][64 positions],
// and V, [64 positions][stride]. Both are the right operand of a product (vec.Product); the form decides how their
// elements lie. A head is numbered over all blocks, block·KVHeads + head, which gives its offset.
type cache struct {
	ir.KVLayer
	format backend.Format
	stride int // of V: VDim in whole vectors
	keys   keys
	values values
	memory []byte
	scales []float32 // [block][KV head]: scales of K, then of V

	// Sizes of one head in one block, kept here since each product needs them and forms are interfaces.
	keyBytes, head    int // bytes of K, and of both
	keyScales, scaled int // scales of K, and of both

	open *cache // the cache of open blocks; itself where nothing is sealed
}

// newCache is a cache of full blocks and, if the format seals, with another one of open blocks.
func newCache(l ir.KVLayer, f backend.Format) *cache {
	c := &cache{KVLayer: l, format: f, stride: (l.VDim + vec.Lanes - 1) &^ (vec.Lanes - 1)}
	c.keys, c.values = keysOf(f.K.Kept(), l.KDim), valuesOf(f.V.Kept(), l.VDim, c.stride)
	c.keyBytes, c.head = c.keys.bytes(), c.keys.bytes()+c.values.bytes()
	c.keyScales = backend.BlockSize * c.keys.scales()
	c.scaled = c.keyScales + backend.BlockSize*c.values.scales()
	if c.open = c; l.Recent > 0 {
		recent := l
		recent.Class, recent.Recent = l.Recent, 0
		c.open = newCache(recent, backend.Format{K: backend.Side{Open: f.K.Open}, V: backend.Side{Open: f.V.Open}})
	}
	return c
}

// parts are the cache, and the cache of its open blocks if there is another one.
func (c *cache) parts() []*cache {
	if c.open == c {
		return []*cache{c}
	}
	return []*cache{c, c.open}
}

// key is the offset of K of a head, and value that of V.
func (c *cache) key(head int) int { return head * c.head }

func (c *cache) value(head int) int { return c.key(head) + c.keyBytes }

// size is the bytes of blocks, and of their scales.
func (c *cache) size(blocks int) (elements, scales int) {
	heads := blocks * c.KVHeads
	return c.key(heads), 4 * heads * c.scaled
}

// heldKey is K of a head in a block, and heldValue V.
func (c *cache) heldKey(head int) held {
	return held{c.memory[c.key(head):c.value(head)], c.scales[head*c.scaled:]}
}

func (c *cache) heldValue(head int) held {
	return held{c.memory[c.value(head):c.key(head+1)], c.scales[head*c.scaled+c.keyScales:]}
}

// from is the memory from an offset on; past the end it is the last few bytes, for reading ahead at the end of the
// cache.
func (c *cache) from(at int) []byte { return c.memory[min(at, len(c.memory)-vec.Lanes*4):] }

// store keeps K and V of a head at a position of its block.
func (c *cache) store(isa vec.ISA, w *workspace, head, at int, key, value []float32) {
	c.keys.store(isa, w, c.heldKey(head), at, key)
	c.values.store(isa, w, c.heldValue(head), at, value)
}

// scores computes the scores of n queries, from the given one on, with K of a head, into q.scores from row on: for the
// positions below hi and some after them. What lies at ahead is read next.
func (c *cache) scores(isa vec.ISA, q *queries, first, row, n, head, hi, ahead int) {
	q.first = first
	q.product = vec.Product{
		C: q.scores[row*backend.BlockSize:][:n*backend.BlockSize], A: q.scaled[first*c.KDim:], Rows: n, K: c.KDim,
		N: (hi + vec.Lanes - 1) &^ (vec.Lanes - 1), CStride: backend.BlockSize, AStride: c.KDim, BStride: backend.BlockSize,
	}
	c.keys.multiply(isa, q, &q.product, c.heldKey(head), c.from(ahead))
}

// add sums V of the positions [lo, hi) of a head, weighted for n queries by q.scores from row on, into the same rows of
// q.block. What lies at ahead is read next.
func (c *cache) add(isa vec.ISA, q *queries, row, n, head, lo, hi, ahead int) {
	weights := q.scores[row*backend.BlockSize:][:n*backend.BlockSize]
	q.product = vec.Product{
		C: q.block.acc[row*c.stride:], A: weights[lo:], Rows: n, K: hi - lo, N: c.stride,
		CStride: c.stride, AStride: backend.BlockSize, BStride: c.stride,
	}
	c.values.multiply(isa, q, &q.product, weights, lo, c.heldValue(head), c.from(ahead))
}
