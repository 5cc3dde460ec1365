package ref

import (
	"fmt"
	"math"

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

// cache is the keys and values of one layer, by slot: block and position in it. What it stores was rounded to the
// cache's type, and is kept as float32.
type cache struct {
	ir.KVLayer
	k, v []float32
	typ  backend.KVType
}

func newCache(l ir.KVLayer, c backend.Config) cache {
	positions := c.Blocks[l.Class] * backend.BlockSize
	return cache{
		KVLayer: l, typ: c.KV,
		k: make([]float32, positions*l.KVHeads*l.KDim),
		v: make([]float32, positions*l.KVHeads*l.VDim),
	}
}

func (c *cache) bytes() int64 { return 4 * int64(len(c.k)+len(c.v)) }

// put stores k and v, all heads of one position.
func (c *cache) put(slot int, k, v []float32) {
	keys, values := c.k[slot*len(k):][:len(k)], c.v[slot*len(v):][:len(v)]
	for h := range c.KVHeads {
		for from := 0; from < c.KDim; from += backend.KVScaled {
			i, j := h*c.KDim+from, h*c.KDim+min(from+backend.KVScaled, c.KDim)
			c.round(keys[i:j], k[i:j])
		}
		c.round(values[h*c.VDim:(h+1)*c.VDim], v[h*c.VDim:])
	}
}

// round keeps src as the cache's type would; dst is a group of features that share a scale, if they have one.
func (c *cache) round(dst, src []float32) {
	copy(dst, src)
	switch c.typ {
	case backend.KVF16:
		for i, x := range dst {
			dst[i] = quant.F16ToF32(quant.F32ToF16(x))
		}
	case backend.KVQ8:
		amax := float32(0)
		for _, x := range dst {
			amax = max(amax, x, -x)
		}
		if amax < backend.KVTiny {
			clear(dst)
			return
		}
		scale := 127 / amax
		for i, x := range dst {
			dst[i] = float32(math.RoundToEven(float64(x*scale))) * (1 / scale)
		}
	}
}

// key is the key of one KV head.
func (c *cache) key(slot, head int) []float32 {
	at := (slot*c.KVHeads + head) * c.KDim
	return c.k[at : at+c.KDim]
}

// value is the value of one KV head.
func (c *cache) value(slot, head int) []float32 {
	at := (slot*c.KVHeads + head) * c.VDim
	return c.v[at : at+c.VDim]
}
