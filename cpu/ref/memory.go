package ref

import (
	"fmt"
	"slices"

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
	if w.typ == quant.I32 {
		quant.Whole(dst, w.data[i*w.rowBytes:][:w.rowBytes])
		return
	}
	if err := quant.Dequantize(w.typ, dst, w.data[i*w.rowBytes:(i+1)*w.rowBytes]); err != nil {
		panic(err) // Compile checked type and size
	}
}

// cache is the keys and values of one layer, by block and position in it. They are kept as float32, as the cache's
// format gives them back.
type cache struct {
	ir.KVLayer
	format backend.Format
	k, v   []float32
	open   *cache // the cache of open blocks, in which rows are stored until they are sealed; nil: rows are stored here
	block  []byte // scratch: rows are written to it in the cache's format, and read back
}

func newCache(l ir.KVLayer, format backend.Format, c backend.Config) cache {
	positions := c.Blocks[l.Class] * backend.BlockSize
	x := cache{
		KVLayer: l, format: format,
		k: make([]float32, positions*l.KVHeads*l.KDim),
		v: make([]float32, positions*l.KVHeads*l.VDim),
	}
	if l.Recent > 0 {
		l.Class, l.Recent = l.Recent, 0
		open := newCache(l, format, c)
		x.open = &open
	}
	return x
}

func (c *cache) bytes() int64 { return 4 * int64(len(c.k)+len(c.v)) }

// put stores k and v, all heads of one position.
func (c *cache) put(slot int, k, v []float32) {
	for h := range c.KVHeads {
		c.through(c.format.K.Open, c.key(slot, h), k[h*c.KDim:][:c.KDim], c.KDim)
		c.through(c.format.V.Open, c.value(slot, h), v[h*c.VDim:][:c.VDim], c.VDim)
	}
}

// seal copies an open block, rounded to the sealed form. Both blocks are given by their first slots.
func (c *cache) seal(slot, open int) {
	k, v := make([]float32, backend.BlockSize*c.KDim), make([]float32, backend.BlockSize*c.VDim)
	for h := range c.KVHeads {
		for i := range backend.BlockSize {
			copy(k[i*c.KDim:], c.open.key(open+i, h))
			copy(v[i*c.VDim:], c.open.value(open+i, h))
		}
		if c.format.K.Sealed != nil {
			c.through(c.format.K.Sealed, k, k, c.KDim)
		}
		if c.format.V.Sealed != nil {
			c.through(c.format.V.Sealed, v, v, c.VDim)
		}
		for i := range backend.BlockSize {
			copy(c.key(slot+i, h), k[i*c.KDim:])
			copy(c.value(slot+i, h), v[i*c.VDim:])
		}
	}
}

// through rounds rows to a form.
func (c *cache) through(f backend.Form, dst, rows []float32, features int) {
	c.block = slices.Grow(c.block[:0], f.Bytes(features))[:f.Bytes(features)]
	f.Put(c.block, features, 0, rows)
	f.Get(dst, c.block, features, 0)
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
