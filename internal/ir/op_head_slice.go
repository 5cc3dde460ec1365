package ir

import "fmt"

// headSliceOp describes HeadSlice.
var headSliceOp = operation{
	name: "head slice", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsHeadSlice,
	loop: (*Frame).headSlice, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("heads=%d from=%d", n.Heads, n.From) },
	cases: []Case{
		{"head slice", func(b *Builder, x Value, n int) Value {
			return b.HeadJoin(b.HeadSlice(x, 4, n/4-5, 5), b.HeadSlice(x, 4, 0, n/4-5), 4)
		}},
	},
}

// HeadSlice is the features [from, from+width) of each of so many parts of a row.
func (b *Builder) HeadSlice(x Value, heads, from, width int) Value {
	return b.add(Node{Op: HeadSlice, In: []Value{x}, W: NoRef, B: NoRef, Heads: heads, From: from}, heads*width)
}

func fitsHeadSlice(p *Program, n *Node) error {
	in, out := p.Widths[n.In[0]], p.Widths[n.Out]
	if n.Heads <= 0 || in%n.Heads != 0 || out%n.Heads != 0 || n.From < 0 || n.From > (in-out)/n.Heads {
		return fmt.Errorf("%d features from %d on of each of %d heads of %d in all", out/max(n.Heads, 1), n.From, n.Heads, in)
	}
	return nil
}

func (f *Frame) headSlice(n *Node) {
	for r := range f.height(n.Out) {
		for h := range n.Heads {
			copy(part(f.row(n.Out, r), h, n.Heads), part(f.row(n.In[0], r), h, n.Heads)[n.From:])
		}
	}
}
