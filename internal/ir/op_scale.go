package ir

import "fmt"

// scaleOp describes Scale.
var scaleOp = operation{
	name: "scale", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsScale,
	loop: (*Frame).scale, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("%g", n.Factor) },
	cases: []Case{
		{"scale", func(b *Builder, x Value, n int) Value { return b.Scale(x, -1.7) }},
	},
}

// Scale is factor·x; a factor of 1 records nothing.
func (b *Builder) Scale(x Value, factor float32) Value {
	if factor == 1 {
		return x
	}
	return b.pointwise(Node{Op: Scale, In: []Value{x}, Factor: factor})
}

func fitsScale(p *Program, n *Node) error {
	if !finite(float64(n.Factor)) {
		return fmt.Errorf("factor is %v", n.Factor)
	}
	return sameWidths(p, n)
}

func (f *Frame) scale(n *Node) {
	f.each(n, func(x []float32) float32 { return n.Factor * x[0] })
}
