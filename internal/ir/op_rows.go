package ir

// rowsOp describes Rows.
var rowsOp = operation{
	name: "rows", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: sameWidths,
	loop: (*Frame).rows, byRow: true,
	cases: []Case{
		{"rows", func(b *Builder, x Value, n int) Value { return b.Scale(x, 3) }},
	},
}

func (f *Frame) rows(n *Node) {
	for j, r := range f.Wanted {
		copy(f.row(n.Out, j), f.row(n.In[0], int(r)))
	}
}
