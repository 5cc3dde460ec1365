package ir

import (
	"fmt"
	"math"
)

// temperOp describes Temper.
var temperOp = operation{
	name: "temper", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsTemper,
	loop: (*Frame).temper, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("%g every=%d from=%d", n.Factor, n.Every, n.From) },
	cases: []Case{
		{"temper", func(b *Builder, x Value, n int) Value { return b.Temper(x, 0.3, 3, 1) }},
		{"temper from 0", func(b *Builder, x Value, n int) Value { return b.Temper(x, 0.3, 3, 0) }},
	},
}

// Temper multiplies x by 1 + factor·ln(1+⌊(position+from)/every⌋): far rows attend more sharply.
func (b *Builder) Temper(x Value, factor float32, every, from int) Value {
	return b.pointwise(Node{Op: Temper, In: []Value{x}, Factor: factor, Every: every, From: from})
}

func fitsTemper(p *Program, n *Node) error {
	if n.Every <= 0 || n.From < 0 || !finite(float64(n.Factor)) {
		return fmt.Errorf("factor %v every %d positions from %d", n.Factor, n.Every, n.From)
	}
	return sameWidths(p, n)
}

func (f *Frame) temper(n *Node) {
	for _, span := range f.Spans {
		for i := range span.Rows {
			far := math.Floor(float64(span.Pos+i+n.From) / float64(n.Every))
			factor := 1 + float64(n.Factor)*math.Log1p(far)
			for j, x := range f.row(n.In[0], span.Row+i) {
				f.row(n.Out, span.Row+i)[j] = float32(float64(x) * factor)
			}
		}
	}
}
