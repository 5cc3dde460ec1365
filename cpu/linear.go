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
	split    int // chunks of the running step
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
	workers := l.m.device.pool.size()
	if workers == 1 && rows == 1 {
		l.split = 1 // each chunk begins with weights that nobody asked for before
	} else {
		l.split = min(l.tiles, chunksPerWorker*workers, max(1, bytes*rows/chunkBytes))
	}
	return l.split
}

// start is the first tile of a chunk, an even one: the sizes of chunks fall evenly, so that workers end together.
func (l *linear) start(chunk int) int {
	left := l.split - chunk
	if left == 0 {
		return l.tiles
	}
	return (l.tiles - l.tiles*left*left/(l.split*l.split)) &^ 1
}

func (l *linear) run(worker, chunk int) {
	from, to := l.start(chunk), l.start(chunk+1)
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
