package cpu

import (
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
)

// linear multiplies several matrices by their inputs. Its work is the tiles of all of them in a row; a worker takes
// some neighbouring ones and multiplies them by every row of the step.
type linear struct {
	m        *model
	wanted   bool
	products []product
	tiles    int
	cut      cut // of the running step
}

// cut is how tiles fall into chunks: a chunk is a share of the tiles left. Then workers end together, even if one of
// them has half of its core.
type cut struct {
	tiles int
	share int
	least int // tiles of a chunk
	unit  int // a chunk is a multiple of, if it can
}

type product struct {
	out  place
	w    *kernels.Matrix
	bias []float32 // nil: none
	acts *kernels.Acts
	from int // number of its first tile
}

// Chunks are small, but not so small that claiming one counts.
const (
	chunksPerWorker = 8
	chunkBytes      = 32 << 10 // at least, of weights times rows
)

func (b *binder) product(ph *phase) *linear {
	l := &linear{m: b.m, wanted: ph.wanted}
	for i := range ph.items {
		n := ph.items[i].node
		w := b.m.weights[n.W].matrix
		l.products = append(l.products, product{
			out: b.room.place(n.Out), w: w, bias: b.vector(n.B), from: l.tiles,
			acts: b.prepared(n.In[0], kernels.FormOf(w.Type)),
		})
		l.tiles += w.Tiles()
	}
	return l
}

// prepared describes activations in the form of a product: the blocks that quantizeOp fills, or the value itself.
func (b *binder) prepared(v ir.Value, f kernels.Form) *kernels.Acts {
	key := prepared{v, f}
	if a := b.acts[key]; a != nil {
		return a
	}
	a := &kernels.Acts{Form: f, Cols: b.p.Widths[v]}
	if f == kernels.Plain {
		in := b.room.place(v)
		a.Float, a.Stride = b.m.scratch[in.off:], in.stride
	} else {
		buf := b.room.acts[key]
		memory := bytesOf(b.m.scratch[buf.off:][:buf.floats(b.m.config)])
		rows, tiles := buf.bytes(b.m.config)
		a.Blocks = memory[:rows]
		if tiles > 0 {
			a.Tiles = memory[rows:]
		}
	}
	b.acts[key] = a
	return a
}

func (l *linear) chunks() int {
	rows := l.m.rows(l.wanted)
	if rows == 0 {
		return 0
	}
	bytes := 0
	for i := range l.products {
		p := &l.products[i]
		p.acts.Rows = rows
		bytes += len(p.w.Data)
	}
	l.cut = newCut(l.tiles, rows, l.m.device.pool.size(), bytes)
	return l.cut.chunks()
}

// newCut cuts tiles of so many bytes for a product with some rows. One row is bound by memory, and each chunk begins
// with weights that nobody asked for before: chunks are large. More rows shall find a chunk in the cache when they come
// to it again.
func newCut(tiles, rows, workers, bytes int) cut {
	c := cut{tiles: tiles, share: 4 * workers, unit: 2} // strips are multiplied by many rows in pairs
	if rows == 1 {
		c.share, c.unit = 3*workers/2, 1
	}
	c.least = max(c.unit, chunkBytes*tiles/(bytes*rows))
	return c
}

func (c *cut) chunks() (n int) {
	for left := c.tiles; left > 0; left -= c.next(left) {
		n++
	}
	return n
}

// next is the size of a chunk when so many tiles are left.
func (c *cut) next(left int) int {
	n := max(left/c.share, c.least)
	unit := c.unit
	if n >= kernels.Streams { // all of one row's streams are of a length then
		unit = kernels.Streams
	}
	return min(n/unit*unit, left)
}

// chunk is tiles [from, to) of chunk i.
func (c *cut) chunk(i int) (from, to int) {
	left := c.tiles
	for range i {
		left -= c.next(left)
	}
	return c.tiles - left, c.tiles - left + c.next(left)
}

func (l *linear) run(worker, chunk int) {
	from, to := l.cut.chunk(chunk)
	for i := range l.products {
		p := &l.products[i]
		if a, b := max(from, p.from)-p.from, min(to-p.from, p.w.Tiles()); a < b {
			l.multiply(&l.m.workers[worker].strips, p, a, b)
		}
	}
}

// multiply computes the outputs of tiles [a, b).
func (l *linear) multiply(strips *kernels.Room, p *product, a, b int) {
	out := l.m.area(&p.out)[p.out.off:]
	strips.MatMul(l.m.device.set, out, p.out.stride, p.w, a, b, p.acts)
	if p.bias == nil {
		return
	}
	from, to := a*kernels.TileRows, min(b*kernels.TileRows, p.w.Rows)
	for r := range p.acts.Rows {
		y := out[r*p.out.stride:][from:to]
		l.m.device.isa.Add(y, y, p.bias[from:to])
	}
}

// bytesOf views float32 memory as bytes.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
