package ir

import "fmt"

// affineOp describes Affine.
var affineOp = operation{
	name: "affine", inputs: [2]int{1, 1}, w: optional, b: optional, use: Vector, fits: fitsAffine,
	loop: (*Frame).affine, byRow: true,
	cases: []Case{
		{"affine", func(b *Builder, x Value, n int) Value {
			return b.Affine(b.Affine(x, "", 0, "kinds", 2), "a", n, "b", 1)
		}},
		{"affine one", func(b *Builder, x Value, n int) Value { return b.Affine(x, "a", 1, "", 0) }},
	},
}

// Affine is W·x + B. Each name is complete, or empty for none. w has width values, or one for all features; bias is the
// first of rows rows, each as wide as x.
func (b *Builder) Affine(x Value, w string, width int, bias string, rows int) Value {
	n := Node{Op: Affine, In: []Value{x}, W: NoRef, B: NoRef}
	if w != "" {
		n.W = b.vector(w, width)
	}
	if bias != "" {
		n.B = b.weight(bias, rows, b.Width(x), Vector)
	}
	return b.add(n, b.Width(x))
}

func fitsAffine(p *Program, n *Node) error {
	width := p.Widths[n.Out]
	if n.W == NoRef && n.B == NoRef {
		return fmt.Errorf("neither factors nor a bias")
	}
	if n.W != NoRef && p.Weights[n.W].Rows*p.Weights[n.W].Cols != 1 {
		if err := vector(p, n.W, width); err != nil {
			return err
		}
	}
	if n.B != NoRef && p.Weights[n.B].Cols != width {
		return fmt.Errorf("%s has %d columns, want %d", p.Weights[n.B].Name, p.Weights[n.B].Cols, width)
	}
	return sameWidths(p, n)
}

func (f *Frame) affine(n *Node) {
	width := f.P.Widths[n.Out]
	bias := f.vector(n.B, width, 0)
	factors := f.vector(NoRef, width, 1)
	if n.W != NoRef {
		w := f.table(n.W)
		for i := range factors {
			factors[i] = w[min(i, len(w)-1)]
		}
	}
	for r := range f.height(n.Out) {
		for i, x := range f.row(n.In[0], r) {
			f.row(n.Out, r)[i] = float32(float64(factors[i])*float64(x) + float64(bias[i]))
		}
	}
}
