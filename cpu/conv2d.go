package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// conv2D is a Conv2D. A chunk is some neighbouring pixels of the result: a worker puts what each of them is made of
// side by side, and multiplies these windows by the matrix. So no more than a worker's windows are there at a time.
type conv2D struct {
	ex       *execution
	out, x   place
	args     *ir.Conv2DArgs
	w        *weight
	bias     []float32
	channels int // of the input
	each     int // pixels of a chunk
	what     string
}

// Windows of a chunk are so many that the matrix, which is read for each chunk, costs little beside them, and so few
// that they stay in L2. Kernels for floats take windowGroup of them at a time.
const (
	windowGroup  = 12
	mostWindows  = 8 * windowGroup
	windowFloats = 192 << 10
)

func windows(cols int) int {
	return min(mostWindows, max(windowGroup, windowFloats/cols/windowGroup*windowGroup))
}

// windowsOf is the memory for windows that a worker needs in a program, in float32.
func windowsOf(p *ir.Bound) (most int) {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if n := &p.Segments[s].Nodes[i]; n.Op == ir.Conv2D {
				cols := p.Weights[n.W].Cols
				most = max(most, cols*windows(cols))
			}
		}
	}
	return most
}

// windowTypes finds matrices of convolutions whose kernels want other windows than float32.
func windowTypes(p *ir.Bound) error {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			if n.Op == ir.Conv2D && kernels.FormOf(p.Types[n.W]) != kernels.Plain {
				return fmt.Errorf("%s is of type %s: want F32, F16 or BF16 for a convolution", p.Weights[n.W].Name, p.Types[n.W])
			}
		}
	}
	return nil
}

func (b *binder) conv2D(n *ir.Node) *conv2D {
	a, w, out := n.Conv2D, &b.m.weights[n.W], b.layout.place(n.Out)
	if out.stride != out.width {
		panic("cpu: a convolution writes to a part of rows")
	}
	return &conv2D{ex: &b.m.execution, out: out, x: b.layout.place(n.In[0]), args: a, w: w,
		bias: b.vector(n.B), channels: b.p.Widths[n.In[0]] / (a.Side * a.Side), each: windows(w.cols),
		what: "the result of " + w.name}
}

// pixels is the number of pixels in a row of the result.
func (o *conv2D) pixels() int { return o.args.Result() * o.args.Result() }

func (o *conv2D) chunks() int { return (o.ex.rows(false)*o.pixels() + o.each - 1) / o.each }

func (o *conv2D) run(worker, chunk int) {
	ex, work, outputs, from := o.ex, &o.ex.workers[worker], o.w.rows, chunk*o.each
	n := min(o.each, ex.rows(false)*o.pixels()-from)
	for i := range n {
		o.window(work.gatherFloats[i*o.w.cols:][:o.w.cols], from+i)
	}
	work.acts = kernels.Acts{Form: kernels.Plain, Cols: o.w.cols, Rows: n, Float: work.gatherFloats, Stride: o.w.cols}
	y := ex.area(&o.out)[o.out.off+from*outputs:][:n*outputs]
	m := o.w.parts[0] // only an output matrix has more
	work.strips.MatMul(ex.device.set, y, outputs, m, o.bias, 0, m.Tiles(), &work.acts)
	if err := ex.finite(y, o.what); err != nil {
		ex.fail(err)
	}
}

// window collects what a pixel of the result is made of. Pixels are numbered cell by cell.
func (o *conv2D) window(to []float32, pixel int) {
	r, side := pixel/o.pixels(), o.args.Result()
	span := &o.ex.step.Spans[o.ex.span[r]]
	grid := span.Grid.OrLine(span.Rows)
	y := (r-span.Row)/grid.Width*side + pixel%o.pixels()/side
	x := (r-span.Row)%grid.Width*side + pixel%side
	for down := range o.args.Size {
		line := o.args.Source(y, down, grid.Height)
		for across := range o.args.Size {
			o.pixel(to[:o.channels], span, grid.Width, line, o.args.Source(x, across, grid.Width))
			to = to[o.channels:]
		}
	}
}

// pixel copies the channels of a pixel of the input; zeros beyond an edge.
func (o *conv2D) pixel(to []float32, span *backend.Span, width, line, column int) {
	if line < 0 || column < 0 {
		clear(to)
		return
	}
	side := o.args.Side
	row := o.ex.at(&o.x, span.Row+line/side*width+column/side)
	copy(to, row[(line%side*side+column%side)*o.channels:])
}
