package ir

import "fmt"

// headLinearOp describes HeadLinear.
var headLinearOp = operation{
	name: "head linear", inputs: [2]int{1, 1}, w: required, b: none, use: Matrix, fits: fitsHeadLinear,
	loop: (*Frame).headLinear, cost: costOfMatrix, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("heads=%d", n.Heads) },
	cases: []Case{
		{"head linear", func(b *Builder, x Value, n int) Value {
			return b.HeadLinear(x, "w", n/32, 32)
		}},
		{"head linear narrow", func(b *Builder, x Value, n int) Value {
			return b.HeadLinear(b.HeadLinear(x, "w", 2, 48), "v", 4, n/4)
		}},
	},
}

// HeadLinear multiplies each of so many parts (heads) of a row by a matrix of its own, with out rows; the matrices are
// stacked under one name.
func (b *Builder) HeadLinear(x Value, name string, heads, out int) Value {
	w := b.weight(name+".weight", heads*out, b.Width(x)/max(heads, 1), Matrix)
	b.p.Weights[w].Heads = heads
	return b.add(Node{Op: HeadLinear, In: []Value{x}, W: w, B: NoRef, Heads: heads}, heads*out)
}

func fitsHeadLinear(p *Program, n *Node) error {
	w, in, out := &p.Weights[n.W], p.Widths[n.In[0]], p.Widths[n.Out]
	if n.Heads <= 0 || w.Heads != n.Heads || w.Rows != out || w.Rows%n.Heads != 0 || w.Cols*n.Heads != in {
		return fmt.Errorf("%s is %d×%d of %d heads, want %d×%d of %d", w.Name, w.Rows, w.Cols, w.Heads, out,
			in/max(n.Heads, 1), n.Heads)
	}
	return nil
}

func (f *Frame) headLinear(n *Node) {
	w := &f.P.Weights[n.W]
	weights := make([]float32, w.Cols)
	for r := range f.height(n.Out) {
		for h := range n.Heads {
			f.observe(n.W, h, part(f.row(n.In[0], r), h, n.Heads))
		}
	}
	for o := range w.Rows {
		f.Weights.Decode(n.W, o, weights)
		h := o / (w.Rows / n.Heads)
		for r := range f.height(n.Out) {
			sum := 0.0
			for i, x := range part(f.row(n.In[0], r), h, n.Heads) {
				sum += float64(weights[i]) * float64(x)
			}
			f.row(n.Out, r)[o] = float32(sum)
		}
	}
}
