package ir

// addOp describes Add.
var addOp = operation{
	name: "add", inputs: [2]int{2, 2}, w: none, b: none, use: 0, fits: sameWidths,
	loop: (*Frame).add, byRow: true,
	cases: []Case{
		{"add", func(b *Builder, x Value, n int) Value { return b.Add(x, b.Act(SiLU, x)) }},
	},
}

// Add is x + y.
func (b *Builder) Add(x, y Value) Value { return b.pointwise(Node{Op: Add, In: []Value{x, y}}) }

func (f *Frame) add(n *Node) {
	f.each(n, func(x []float32) float32 { return x[0] + x[1] })
}
