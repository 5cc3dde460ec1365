package ir

import "fmt"

// mulOp describes Mul.
var mulOp = operation{
	name: "mul", inputs: [2]int{2, 2}, w: none, b: none, use: 0, fits: fitsMul,
	loop: (*Frame).mul, byRow: true,
	cases: []Case{
		{"mul", func(b *Builder, x Value, n int) Value { return b.Mul(x, b.Act(SiLU, x)) }},
		{"mul row", func(b *Builder, x Value, n int) Value { return b.Mul(x, b.Slice(x, 5, 1)) }},
		{"mul heads", func(b *Builder, x Value, n int) Value { return b.Mul(x, b.Slice(x, 5, n/16)) }},
	},
}

// Mul is x · y, feature by feature, or each head of x by a feature of y: as many neighbours as x has features for each
// of y.
func (b *Builder) Mul(x, y Value) Value { return b.pointwise(Node{Op: Mul, In: []Value{x, y}}) }

func fitsMul(p *Program, n *Node) error {
	x, y := p.Widths[n.In[0]], p.Widths[n.In[1]]
	if x != p.Widths[n.Out] || y < 1 || x%y != 0 {
		return fmt.Errorf("inputs of %d and %d features, output of %d", x, y, p.Widths[n.Out])
	}
	return nil
}

func (f *Frame) mul(n *Node) {
	for r := range f.height(n.Out) {
		x, by := f.row(n.In[0], r), f.row(n.In[1], r)
		for i := range x {
			f.row(n.Out, r)[i] = x[i] * by[i*len(by)/len(x)]
		}
	}
}
