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
		{"affine table", func(b *Builder, x Value, n int) Value { return b.AffineTable(x, "a", "b", 4) }},
		{"affine one", func(b *Builder, x Value, n int) Value { return b.Affine(x, "a", 1, "", 0) }},
		{"affine heads", func(b *Builder, x Value, n int) Value { return b.AffineHeads(x, "a", n/16) }},
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

// AffineTable is Affine whose factors and bias, by complete names, or empty, are tables of rows rows that are as wide
// as x together.
func (b *Builder) AffineTable(x Value, w, bias string, rows int) Value {
	n := Node{Op: Affine, In: []Value{x}, W: NoRef, B: NoRef}
	each := b.Width(x) / max(rows, 1)
	if w != "" {
		n.W = b.weight(w, rows, each, Vector)
	}
	if bias != "" {
		n.B = b.weight(bias, rows, each, Vector)
	}
	return b.add(n, b.Width(x))
}

// AffineHeads is Affine without a bias, of a column of factors, by complete name: one for each of so many heads.
func (b *Builder) AffineHeads(x Value, w string, heads int) Value {
	return b.add(Node{Op: Affine, In: []Value{x}, W: b.weight(w, heads, 1, Vector), B: NoRef}, b.Width(x))
}

func fitsAffine(p *Program, n *Node) error {
	width := p.Widths[n.Out]
	if n.W == NoRef && n.B == NoRef {
		return fmt.Errorf("neither factors nor a bias")
	}
	if n.W != NoRef {
		if w := &p.Weights[n.W]; w.Rows*w.Cols < 1 || width%(w.Rows*w.Cols) != 0 {
			return fmt.Errorf("%s is %d×%d, want a value for each of %d features, or of heads of them", w.Name, w.Rows, w.Cols,
				width)
		}
	}
	if n.B != NoRef {
		if w := &p.Weights[n.B]; w.Cols != width && w.Rows*w.Cols != width {
			return fmt.Errorf("%s has %d columns, want %d", w.Name, w.Cols, width)
		}
	}
	return sameWidths(p, n)
}

func (f *Frame) affine(n *Node) {
	width := f.P.Widths[n.Out]
	bias := f.vector(NoRef, width, 0)
	if n.B != NoRef {
		copy(bias, f.table(n.B))
	}
	factors := f.vector(NoRef, width, 1)
	if n.W != NoRef {
		w := f.table(n.W)
		for i := range factors {
			factors[i] = w[i*len(w)/width]
		}
	}
	for r := range f.height(n.Out) {
		for i, x := range f.row(n.In[0], r) {
			f.row(n.Out, r)[i] = float32(float64(factors[i])*float64(x) + float64(bias[i]))
		}
	}
}
