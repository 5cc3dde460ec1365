package ir

import "fmt"

// sliceOp describes Slice.
var sliceOp = operation{
	name: "slice", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsSlice,
	loop: (*Frame).slice, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("from=%d", n.From) },
	cases: []Case{
		{"slice", func(b *Builder, x Value, n int) Value {
			wide := b.Linear(x, "wide", 2*n+n/2)
			return b.Mul(b.Slice(wide, n/2, n), b.Slice(wide, n/2+n, n))
		}},
	},
}

// Slice is the features [from, from+width) of x.
func (b *Builder) Slice(x Value, from, width int) Value {
	return b.add(Node{Op: Slice, In: []Value{x}, W: NoRef, B: NoRef, From: from}, width)
}

func fitsSlice(p *Program, n *Node) error {
	if n.From < 0 || p.Widths[n.In[0]]-n.From < p.Widths[n.Out] {
		return fmt.Errorf("%d features from %d on, of %d", p.Widths[n.Out], n.From, p.Widths[n.In[0]])
	}
	return nil
}

func (f *Frame) slice(n *Node) {
	for r := range f.height(n.Out) {
		copy(f.row(n.Out, r), f.row(n.In[0], r)[n.From:])
	}
}
