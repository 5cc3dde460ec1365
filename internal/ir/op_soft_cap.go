package ir

import (
	"fmt"
	"math"
)

// softCapOp describes SoftCap.
var softCapOp = operation{
	name: "softcap", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsSoftCap,
	loop: (*Frame).softCap, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("%g", n.Factor) },
	cases: []Case{
		{"soft cap", func(b *Builder, x Value, n int) Value { return b.SoftCap(b.Scale(x, 9), 5) }},
	},
}

// SoftCap limits x smoothly to ±limit; a limit of 0 records nothing.
func (b *Builder) SoftCap(x Value, limit float32) Value {
	if limit == 0 {
		return x
	}
	return b.pointwise(Node{Op: SoftCap, In: []Value{x}, Factor: limit})
}

func fitsSoftCap(p *Program, n *Node) error {
	if !finite(float64(n.Factor)) || n.Factor <= 0 {
		return fmt.Errorf("limit is %v", n.Factor)
	}
	return sameWidths(p, n)
}

func (f *Frame) softCap(n *Node) {
	f.each(n, func(x []float32) float32 { return float32(Cap(float64(x[0]), float64(n.Factor))) })
}

// Cap limits x smoothly to ±limit.
func Cap(x, limit float64) float64 { return limit * math.Tanh(x/limit) }
