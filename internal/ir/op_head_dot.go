package ir

import "fmt"

// headDotOp describes HeadDot.
var headDotOp = operation{
	name: "head dot", inputs: [2]int{2, 2}, w: none, b: none, use: 0, fits: fitsHeadDot,
	loop: (*Frame).headDot, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("heads=%d", n.Heads) },
	cases: []Case{
		{"head dot", func(b *Builder, x Value, n int) Value { return b.Mul(x, b.HeadDot(x, b.Act(SiLU, x), n/16)) }},
	},
}

// HeadDot is the product of each of so many parts (heads) of x with the same part of y.
func (b *Builder) HeadDot(x, y Value, heads int) Value {
	return b.add(Node{Op: HeadDot, In: []Value{x, y}, W: NoRef, B: NoRef, Heads: heads}, heads)
}

func fitsHeadDot(p *Program, n *Node) error {
	x, y := p.Widths[n.In[0]], p.Widths[n.In[1]]
	if n.Heads <= 0 || x != y || x%n.Heads != 0 || p.Widths[n.Out] != n.Heads {
		return fmt.Errorf("%d and %d features of %d heads make %d", x, y, n.Heads, p.Widths[n.Out])
	}
	return nil
}

func (f *Frame) headDot(n *Node) {
	for r := range f.height(n.Out) {
		for h := range n.Heads {
			x, y, sum := part(f.row(n.In[0], r), h, n.Heads), part(f.row(n.In[1], r), h, n.Heads), 0.0
			for i := range x {
				sum += float64(x[i]) * float64(y[i])
			}
			f.row(n.Out, r)[h] = float32(sum)
		}
	}
}
