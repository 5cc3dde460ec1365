package ir

// mulOp describes Mul.
var mulOp = operation{
	name: "mul", inputs: [2]int{2, 2}, w: none, b: none, use: 0, fits: fitsMul,
	loop: (*Frame).mul, byRow: true,
	cases: []Case{
		{"mul", func(b *Builder, x Value, n int) Value { return b.Mul(x, b.Act(SiLU, x)) }},
		{"mul row", func(b *Builder, x Value, n int) Value { return b.Mul(x, b.Slice(x, 5, 1)) }},
	},
}

// Mul is x · y, feature by feature, or the whole row by the only feature of y.
func (b *Builder) Mul(x, y Value) Value { return b.pointwise(Node{Op: Mul, In: []Value{x, y}}) }

func fitsMul(p *Program, n *Node) error {
	if p.Widths[n.In[1]] == 1 && p.Widths[n.In[0]] == p.Widths[n.Out] {
		return nil
	}
	return sameWidths(p, n)
}

func (f *Frame) mul(n *Node) {
	for r := range f.height(n.Out) {
		x, by := f.row(n.In[0], r), f.row(n.In[1], r)
		for i := range x {
			f.row(n.Out, r)[i] = x[i] * by[min(i, len(by)-1)]
		}
	}
}
