package ir

import "fmt"

// leakyOp describes Leaky, the leaky ReLU.
var leakyOp = operation{
	name: "leaky", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsLeaky, loop: (*Frame).leaky, byRow: true,
	args:  func(n *Node) string { return fmt.Sprintf("%g", n.Factor) },
	cases: []Case{{"leaky", func(b *Builder, x Value, _ int) Value { return b.Leaky(x, 0.2) }}},
}

// Leaky is x where it is positive, else factor·x.
func (b *Builder) Leaky(x Value, factor float32) Value {
	return b.pointwise(Node{Op: Leaky, In: []Value{x}, Factor: factor})
}

func fitsLeaky(p *Program, n *Node) error {
	if !finite(float64(n.Factor)) {
		return fmt.Errorf("factor %v", n.Factor)
	}
	return sameWidths(p, n)
}

func (f *Frame) leaky(n *Node) {
	f.each(n, func(x []float32) float32 {
		if x[0] < 0 {
			return n.Factor * x[0]
		}
		return x[0]
	})
}
