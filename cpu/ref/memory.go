package ref

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// weight is a tensor in its file's format. Uploads of different rows may run at once: they share no byte.
type weight struct {
	*ir.Weight
	typ      quant.Type
	rowBytes int
	data     []byte
	have     []bool // by row
}

func (w *weight) upload(row int, data []byte) error {
	rows := len(data) / w.rowBytes
	if len(data)%w.rowBytes != 0 || row < 0 || rows > w.Rows-row {
		return fmt.Errorf("%s: %d bytes at row %d, want whole rows of %d bytes, %d at most",
			w.Name, len(data), row, w.rowBytes, w.Rows)
	}
	copy(w.data[row*w.rowBytes:], data)
	for i := range rows {
		w.have[row+i] = true
	}
	return nil
}

// missing is the number of rows that were never uploaded.
func (w *weight) missing() int {
	n := 0
	for _, have := range w.have {
		if !have {
			n++
		}
	}
	return n
}

// row decodes row i to dst, of Cols values.
func (w *weight) row(dst []float32, i int) {
	if err := quant.Dequantize(w.typ, dst, w.data[i*w.rowBytes:(i+1)*w.rowBytes]); err != nil {
		panic(err) // Compile checked type and size
	}
}

// vector decodes a weight of one row, or n ones (or zeros) where there is none.
func (m *model) vector(r ir.Ref, n int, otherwise float32) []float32 {
	v := make([]float32, n)
	if r != ir.NoRef {
		m.weights[r].row(v, 0)
		return v
	}
	for i := range v {
		v[i] = otherwise
	}
	return v
}

// cache is the keys and values of one layer, by block and position. One of the two number formats is used.
type cache struct {
	ir.KVLayer
	k32, v32 []float32
	k16, v16 []uint16
}

func newCache(l ir.KVLayer, c backend.Config) cache {
	positions := c.Blocks * backend.BlockSize
	k, v := positions*l.KVHeads*l.KDim, positions*l.KVHeads*l.VDim
	if c.KV == backend.KVF32 {
		return cache{KVLayer: l, k32: make([]float32, k), v32: make([]float32, v)}
	}
	return cache{KVLayer: l, k16: make([]uint16, k), v16: make([]uint16, v)}
}

func (c *cache) bytes() int64 {
	return 4*int64(len(c.k32)+len(c.v32)) + 2*int64(len(c.k16)+len(c.v16))
}

// slot is the index of position pos among all positions of all blocks.
func slot(table []int32, pos int) int {
	return int(table[pos/backend.BlockSize])*backend.BlockSize + pos%backend.BlockSize
}

// put stores k and v, all heads of one position, rounded to the cache's type.
func (c *cache) put(slot int, k, v []float32) {
	if c.k32 != nil {
		copy(c.k32[slot*len(k):], k)
		copy(c.v32[slot*len(v):], v)
		return
	}
	for i, x := range k {
		c.k16[slot*len(k)+i] = quant.F32ToF16(x)
	}
	for i, x := range v {
		c.v16[slot*len(v)+i] = quant.F32ToF16(x)
	}
}

// key is feature i of a KV head's key.
func (c *cache) key(slot, head, i int) float64 {
	at := (slot*c.KVHeads+head)*c.KDim + i
	if c.k32 != nil {
		return float64(c.k32[at])
	}
	return float64(quant.F16ToF32(c.k16[at]))
}

// value is feature i of a KV head's value.
func (c *cache) value(slot, head, i int) float64 {
	at := (slot*c.KVHeads+head)*c.VDim + i
	if c.v32 != nil {
		return float64(c.v32[at])
	}
	return float64(quant.F16ToF32(c.v16[at]))
}
