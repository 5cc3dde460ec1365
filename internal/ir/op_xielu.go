package ir

import (
	"fmt"
	"math"
)

// XIELUArgs are the parameters of xIELU (arXiv:2411.13010): of x above 0 it is Above·x² + Beta·x, else
// Below·(e^min(x, Most) − 1 − x) + Beta·x.
type XIELUArgs struct{ Above, Below, Beta, Most float32 }

// xieluOp describes XIELU.
var xieluOp = operation{
	name: "xielu", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsXIELU, loop: (*Frame).xielu, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("%+v", *n.XIELU) },
	cases: []Case{{"xielu", func(b *Builder, x Value, _ int) Value {
		return b.XIELU(b.Scale(x, 3), XIELUArgs{Above: 0.8, Below: 1.3, Beta: 0.5, Most: -1e-6})
	}}},
}

// XIELU is xIELU(x).
func (b *Builder) XIELU(x Value, a XIELUArgs) Value {
	return b.pointwise(Node{Op: XIELU, In: []Value{x}, XIELU: &a})
}

func fitsXIELU(p *Program, n *Node) error {
	a := n.XIELU
	for _, x := range []float32{a.Above, a.Below, a.Beta, a.Most} {
		if !finite(float64(x)) {
			return fmt.Errorf("parameters %+v", *a)
		}
	}
	return sameWidths(p, n)
}

func (f *Frame) xielu(n *Node) {
	f.each(n, func(x []float32) float32 { return float32(n.XIELU.Of(float64(x[0]))) })
}

// Of is the function.
func (a *XIELUArgs) Of(x float64) float64 {
	linear := float64(a.Beta) * x
	if x > 0 {
		return float64(a.Above)*x*x + linear
	}
	return float64(a.Below)*(math.Expm1(min(x, float64(a.Most)))-x) + linear
}
