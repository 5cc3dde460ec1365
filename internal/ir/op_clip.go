package ir

import "fmt"

// clipOp describes Clip.
var clipOp = operation{
	name: "clip", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsClip, loop: (*Frame).clip, byRow: true,
	args:  func(n *Node) string { return fmt.Sprintf("%g", n.Factor) },
	cases: []Case{{"clip", func(b *Builder, x Value, _ int) Value { return b.Clip(x, 0.7) }}},
}

// Clip is x where it lies between −limit and limit, else the nearer of the two.
func (b *Builder) Clip(x Value, limit float32) Value {
	return b.pointwise(Node{Op: Clip, In: []Value{x}, Factor: limit})
}

func fitsClip(p *Program, n *Node) error {
	if !(n.Factor > 0) || !finite(float64(n.Factor)) {
		return fmt.Errorf("limit %v", n.Factor)
	}
	return sameWidths(p, n)
}

func (f *Frame) clip(n *Node) {
	f.each(n, func(x []float32) float32 { return max(min(x[0], n.Factor), -n.Factor) })
}
