package ir

import "fmt"

// aroundOp describes Around. A convolution is a Linear of it.
var aroundOp = operation{
	name: "around", inputs: [2]int{1, 1}, fits: fitsAround, loop: (*Frame).around,
	args: func(n *Node) string { return fmt.Sprintf("size=%d", n.Size) },
	cases: []Case{
		{"around", func(b *Builder, x Value, n int) Value { return b.Convolution(x, "w", 3, n) }},
		{"around itself", func(b *Builder, x Value, _ int) Value { return b.Around(x, 1) }},
		{"around wide", func(b *Builder, x Value, n int) Value { return b.Slice(b.Around(x, 5), 9*n+n/2, n) }},
	},
}

// Around joins the size × size rows around each row of a picture, side by side. size is odd.
func (b *Builder) Around(x Value, size int) Value {
	b.p.Whole = true
	n := Node{Op: Around, In: []Value{x}, W: NoRef, B: NoRef, Size: size}
	return b.add(n, size*size*b.Width(x))
}

// Convolution multiplies the size × size rows around each row by the matrix name, which has out rows, and adds its bias
// if the file has one. The matrix's columns are in the order of those rows, line by line.
func (b *Builder) Convolution(x Value, name string, size, out int) Value {
	return b.Linear(b.Around(x, size), name, out)
}

func fitsAround(p *Program, n *Node) error {
	in, out := p.Widths[n.In[0]], p.Widths[n.Out]
	if n.Size <= 0 || n.Size%2 == 0 || out != n.Size*n.Size*in {
		return fmt.Errorf("%d features of %d × %d rows of %d, want an odd number of rows, side by side", out, n.Size, n.Size, in)
	}
	if !p.Whole {
		return fmt.Errorf("rows around others need whole texts or pictures")
	}
	return nil
}

func (f *Frame) around(n *Node) {
	for _, span := range f.Spans {
		for r := range span.Rows {
			y := f.row(n.Out, span.Row+r)
			for i, at := range span.Grid.Around(span.Rows, r, n.Size, nil) {
				if at >= 0 {
					w := f.P.Widths[n.In[0]]
					copy(y[i*w:(i+1)*w], f.row(n.In[0], span.Row+at))
				}
			}
		}
	}
}

// Around appends the numbers of the size × size rows around row r, in a span of so many rows: −1 beyond an edge.
func (g Grid) Around(rows, r, size int, to []int) []int {
	g = g.OrLine(rows)
	for down := -(size / 2); down <= size/2; down++ {
		for across := -(size / 2); across <= size/2; across++ {
			line, column := r/g.Width+down, r%g.Width+across
			if line < 0 || line >= g.Height || column < 0 || column >= g.Width {
				to = append(to, -1)
			} else {
				to = append(to, line*g.Width+column)
			}
		}
	}
	return to
}
