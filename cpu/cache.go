package cpu

import (
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// cache is K and V of one attention layer, [block][KV head] of two small matrices: K transposed, [KDim][64 positions],
// and V, [64 positions][stride]. Both are the right operand of a product (vec.Product) as they lie there. A head's
// number in all blocks, block·KVHeads + head, says where it begins.
//
// Bytes are scaled: K by 32 features of a position, for a few large features are common in K and would take the bits
// of the others; V by whole heads. Neither costs anything in the products: the scores of 32 features are scaled when
// they are added up, the weights of the positions before they meet V.
type cache struct {
	ir.KVLayer
	stride int       // of V: VDim in whole vectors
	whole  []float32 // one of these three
	halves []uint16
	bytes  []int8
	scales []float32 // of bytes: [block][KV head][K, then V][64 positions]
}

// head is the number of elements of one head in one block.
func (c *cache) head() int { return backend.BlockSize * (c.KDim + c.stride) }

// keyScales is the number of scales that K of one position has.
func (c *cache) keyScales() int { return (c.KDim + backend.KVScaled - 1) / backend.KVScaled }

// scale has scale i of K, or that of V, which comes after them, by position.
func (c *cache) scale(head, i int) *[backend.BlockSize]float32 {
	at := (head*(c.keyScales()+1) + i) * backend.BlockSize
	return (*[backend.BlockSize]float32)(c.scales[at:])
}

// size is the bytes of all elements and the number of all scales.
func (c *cache) size(config backend.Config) (elements, scales int) {
	heads := config.Blocks[c.Class] * c.KVHeads
	n := heads * c.head()
	switch config.KV {
	case backend.KVF32:
		return 4 * n, 0
	case backend.KVF16:
		return 2 * n, 0
	}
	return n, heads * (c.keyScales() + 1) * backend.BlockSize
}

// lay takes the layer's memory, which begins and ends at whole cache lines, and returns the rest.
func (c *cache) lay(config backend.Config, memory []byte) []byte {
	elements, scales := c.size(config)
	at := unsafe.Pointer(unsafe.SliceData(memory))
	switch config.KV {
	case backend.KVF32:
		c.whole = unsafe.Slice((*float32)(at), elements/4)
	case backend.KVF16:
		c.halves = unsafe.Slice((*uint16)(at), elements/2)
	default:
		c.bytes = unsafe.Slice((*int8)(at), elements)
	}
	c.scales = floats(memory[elements:][:4*scales])
	return memory[elements+4*scales:]
}

// key is where K of a head begins.
func (c *cache) key(head int) int { return head * c.head() }

// value is where V of a position begins.
func (c *cache) value(head, at int) int {
	return c.key(head) + backend.BlockSize*c.KDim + at*c.stride
}

// scores are those of n queries with K of a head, in q.scores from row on: those of the positions below hi and some
// after them. What is at ahead is read next.
func (c *cache) scores(isa vec.ISA, q *queries, scaled []float32, row, n, head, hi, ahead int) {
	scores := q.scores[row*backend.BlockSize:][:n*backend.BlockSize]
	p := vec.Product{
		C: scores, A: scaled[row*c.KDim:], Rows: n, K: c.KDim, N: (hi + vec.Lanes - 1) &^ (vec.Lanes - 1),
		CStride: backend.BlockSize, AStride: c.KDim, BStride: backend.BlockSize,
	}
	base := c.key(head)
	if c.bytes == nil {
		c.multiply(isa, q, &p, base, ahead)
		return
	}
	for i := range c.keyScales() {
		from := i * backend.KVScaled
		p.A, p.K = scaled[row*c.KDim+from:], min(backend.KVScaled, c.KDim-from)
		if i > 0 {
			p.C = q.some
		}
		c.multiply(isa, q, &p, base+from*backend.BlockSize, ahead+from*backend.BlockSize)
		if i == 0 {
			isa.MulRows(scores, c.scale(head, i))
		} else {
			isa.MulAddRows(scores, q.some, c.scale(head, i))
		}
	}
}

// values adds up V of the positions [lo, hi) of a head, by the weights of n queries in q.scores from row on, in the
// same rows of q.block. What is at ahead is read next.
func (c *cache) values(isa vec.ISA, q *queries, row, n, head, lo, hi, ahead int) {
	weights := q.scores[row*backend.BlockSize:][:n*backend.BlockSize]
	if c.bytes != nil {
		isa.MulRows(weights, c.scale(head, c.keyScales()))
	}
	p := vec.Product{
		C: q.block.acc[row*c.stride:], A: weights[lo:], Rows: n, K: hi - lo, N: c.stride,
		CStride: c.stride, AStride: backend.BlockSize, BStride: c.stride,
	}
	c.multiply(isa, q, &p, c.value(head, lo), ahead)
}

// worthWidening is the number of rows from which elements are better widened once than in each pass of four rows.
const worthWidening = 8

// multiply runs a product with the elements from a place on; those at next are read after them, or next is beyond the
// cache: part of K may be longer than what is left of the V that follows.
func (c *cache) multiply(isa vec.ISA, q *queries, p *vec.Product, from, next int) {
	n := (p.K-1)*p.BStride + p.N
	next = min(next, max(len(c.whole), len(c.halves), len(c.bytes))-1)
	switch wide := q.wide[:n]; {
	case c.whole != nil:
		isa.Panel(p, c.whole[from:][:n], c.whole[next:])
	case c.halves != nil && p.Rows >= worthWidening:
		isa.Widen(wide, c.halves[from:][:n])
		isa.Panel(p, wide, nil)
	case c.halves != nil:
		isa.PanelHalf(p, c.halves[from:][:n], c.halves[next:])
	case p.Rows >= worthWidening:
		isa.WidenBytes(wide, c.bytes[from:][:n])
		isa.Panel(p, wide, nil)
	default:
		isa.PanelByte(p, c.bytes[from:][:n], c.bytes[next:])
	}
}
