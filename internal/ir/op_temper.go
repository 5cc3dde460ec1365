package ir

import (
	"fmt"
	"math"
)

// temperOp describes Temper.
var temperOp = operation{
	name: "temper", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsTemper,
	loop: (*Frame).temper, byRow: true,
	args: func(n *Node) string { return fmt.Sprintf("%g every=%d", n.Factor, n.Every) },
	cases: []Case{
		{"temper", func(b *Builder, x Value, n int) Value { return b.Temper(x, 0.3, 3) }},
	},
}

// Temper multiplies x by 1 + factor·ln(1+⌊(position+1)/every⌋): far rows attend more sharply.
func (b *Builder) Temper(x Value, factor float32, every int) Value {
	return b.pointwise(Node{Op: Temper, In: []Value{x}, Factor: factor, Every: every})
}

func fitsTemper(p *Program, n *Node) error {
	if n.Every <= 0 || !finite(float64(n.Factor)) {
		return fmt.Errorf("factor %v every %d positions", n.Factor, n.Every)
	}
	return sameWidths(p, n)
}

func (f *Frame) temper(n *Node) {
	for _, span := range f.Spans {
		for i := range span.Rows {
			far := math.Floor(float64(span.Pos+i+1) / float64(n.Every))
			factor := 1 + float64(n.Factor)*math.Log1p(far)
			for j, x := range f.row(n.In[0], span.Row+i) {
				f.row(n.Out, span.Row+i)[j] = float32(float64(x) * factor)
			}
		}
	}
}
