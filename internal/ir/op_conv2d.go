package ir

import "fmt"

// Conv2DArgs configures Conv2D. A row of a picture stands for a cell of Side × Side pixels: its features are theirs,
// pixel by pixel and line by line. So one picture can have values of several resolutions on the same grid of rows, and
// to exchange pixels for channels is to read the same features with another Side.
type Conv2DArgs struct {
	Size   int // of the window, odd
	Side   int // pixels at a side of a cell of the input
	Up     int // 2: every pixel of the input stands for 2 × 2 equal ones, else 1
	Stride int // 1; or 2: each second pixel of each second line, and the window begins there instead of being around it
}

// Result is the side of a cell of the result.
func (a *Conv2DArgs) Result() int { return a.Side * a.Up / a.Stride }

// Source is the coordinate in the input that tap t of a window reads for coordinate at of the result, on an axis of so
// many rows; −1: beyond the edge.
func (a *Conv2DArgs) Source(at, t, rows int) int {
	at = a.Stride*at + t
	if a.Stride == 1 {
		at -= a.Size / 2
	}
	if at < 0 || at >= rows*a.Side*a.Up {
		return -1
	}
	return at / a.Up
}

// Reach is how many lines of rows beside its own a row of the result depends on, at most, at either side.
func (a *Conv2DArgs) Reach() int { return (a.Size/2 + a.Side*a.Up - 1) / (a.Side * a.Up) }

// conv2DOp describes Conv2D.
var conv2DOp = operation{
	name: "conv2d", inputs: [2]int{1, 1}, w: required, b: optional, use: Matrix, fits: fitsConv2D, loop: (*Frame).conv2D,
	args: func(n *Node) string {
		a := n.Conv2D
		return fmt.Sprintf("size=%d side=%d up=%d stride=%d", a.Size, a.Side, a.Up, a.Stride)
	},
	cost: func(p *Program, n *Node) Cost {
		side := float64(n.Conv2D.Result())
		return Cost{Products: p.valuesOf(n.W) * side * side, Values: float64(p.Widths[n.In[0]])}
	},
	cases: []Case{
		{"conv2d", func(b *Builder, x Value, n int) Value {
			return b.Conv2D(x, "w", Conv2DArgs{Size: 3, Side: 1, Up: 1, Stride: 1}, n)
		}},
		{"conv2d one", func(b *Builder, x Value, n int) Value {
			return b.Conv2D(x, "w", Conv2DArgs{Size: 1, Side: 2, Up: 1, Stride: 1}, n/4)
		}},
		{"conv2d cells", func(b *Builder, x Value, n int) Value {
			return b.Conv2D(x, "w", Conv2DArgs{Size: 3, Side: 4, Up: 1, Stride: 1}, n/16)
		}},
		{"conv2d up", func(b *Builder, x Value, n int) Value {
			return b.Conv2D(x, "w", Conv2DArgs{Size: 3, Side: 2, Up: 2, Stride: 1}, n/16)
		}},
		{"conv2d down", func(b *Builder, x Value, n int) Value {
			return b.Conv2D(x, "w", Conv2DArgs{Size: 3, Side: 4, Up: 1, Stride: 2}, n/4)
		}},
	},
}

// Conv2D multiplies the window of each pixel of the result by the matrix name, which has out rows, and adds its bias if
// the file has one. The matrix's columns are those of the window's pixels, line by line, each with all channels.
func (b *Builder) Conv2D(x Value, name string, a Conv2DArgs, out int) Value {
	b.p.Whole = true
	channels := b.Width(x) / max(a.Side*a.Side, 1)
	n := Node{Op: Conv2D, In: []Value{x}, W: b.weight(name+".weight", out, a.Size*a.Size*channels, Matrix), B: NoRef,
		Conv2D: &a}
	if b.Has(name + ".bias") {
		n.B = b.vector(name+".bias", out)
	}
	return b.add(n, a.Result()*a.Result()*out)
}

func fitsConv2D(p *Program, n *Node) error {
	a, in, out := n.Conv2D, p.Widths[n.In[0]], p.Widths[n.Out]
	if a.Size <= 0 || a.Size%2 == 0 || a.Side <= 0 || a.Up < 1 || a.Up > 2 || a.Stride < 1 || a.Stride > 2 ||
		a.Up*a.Stride > 2 || a.Side%a.Stride != 0 {
		return fmt.Errorf("a window of %d, cells of %d, %d times as large, with a stride of %d", a.Size, a.Side, a.Up, a.Stride)
	}
	from, to := a.Side*a.Side, a.Result()*a.Result()
	if in%from != 0 || out%to != 0 {
		return fmt.Errorf("cells of %d and %d pixels do not tile %d and %d features", from, to, in, out)
	}
	w, cols := &p.Weights[n.W], a.Size*a.Size*in/from
	if w.Cols != cols || w.Rows != out/to {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, out/to, cols)
	}
	if !p.Whole {
		return fmt.Errorf("pixels around others need whole texts or pictures")
	}
	return vector(p, n.B, out/to)
}

func (f *Frame) conv2D(n *Node) {
	w, side := &f.P.Weights[n.W], n.Conv2D.Result()
	matrix, bias := f.table(n.W), f.vector(n.B, w.Rows, 0)
	window := make([]float32, w.Cols)
	for _, span := range f.Spans {
		grid := span.Grid.OrLine(span.Rows)
		for y := range grid.Height * side {
			for x := range grid.Width * side {
				f.window(window, n, &span, y, x)
				f.observe(n.W, 0, window)
				to := f.pixel(n.Out, &span, side, y, x)
				for o := range to {
					sum := float64(bias[o])
					for i, v := range window {
						sum += float64(matrix[o*w.Cols+i]) * float64(v)
					}
					to[o] = float32(sum)
				}
			}
		}
	}
}

// window collects what the result's pixel (y, x) is made of: zeros beyond the picture's edges.
func (f *Frame) window(to []float32, n *Node, span *Span, y, x int) {
	a, grid := n.Conv2D, span.Grid.OrLine(span.Rows)
	channels := len(to) / (a.Size * a.Size)
	clear(to)
	for down := range a.Size {
		for across := range a.Size {
			line, column := a.Source(y, down, grid.Height), a.Source(x, across, grid.Width)
			if line >= 0 && column >= 0 {
				copy(to[(down*a.Size+across)*channels:], f.pixel(n.In[0], span, a.Side, line, column))
			}
		}
	}
}

// pixel is the channels of a pixel of a span's picture, in a value whose rows are cells of pixels.
func (f *Frame) pixel(v Value, span *Span, side, y, x int) []float32 {
	row := f.row(v, span.Row+y/side*span.Grid.OrLine(span.Rows).Width+x/side)
	return part(row, y%side*side+x%side, side*side)
}
