package ir

import (
	"fmt"
	"math"
)

// exceedOp describes Exceed.
var exceedOp = operation{
	name: "exceed", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsExceed, loop: (*Frame).exceed, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("%g", n.Factor) },
	cases: []Case{
		{"exceed", func(b *Builder, x Value, _ int) Value { return b.Exceed(x, 0.4) }},
		{"exceed mean", func(b *Builder, x Value, _ int) Value { return b.Exceed(b.Act(Sigmoid, x), 0) }},
	},
}

// Exceed is by how much features of x exceed their mean and so many standard deviations, else 0.
func (b *Builder) Exceed(x Value, deviations float32) Value {
	return b.pointwise(Node{Op: Exceed, In: []Value{x}, Factor: deviations})
}

func fitsExceed(p *Program, n *Node) error {
	if !finite(float64(n.Factor)) {
		return fmt.Errorf("%v deviations", n.Factor)
	}
	return sameWidths(p, n)
}

func (f *Frame) exceed(n *Node) {
	for r := range f.height(n.Out) {
		x, y := f.row(n.In[0], r), f.row(n.Out, r)
		cut := Cut(x, float64(n.Factor))
		for i, v := range x {
			y[i] = float32(math.Max(float64(v)-cut, 0))
		}
	}
}

// Cut is the mean of a row and so many standard deviations of it, those of the row itself and not of a population that
// it was drawn from.
func Cut(x []float32, deviations float64) float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean + deviations*math.Sqrt(square/float64(len(x)))
}
