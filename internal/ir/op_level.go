package ir

import (
	"fmt"
	"math"
)

// levelOp describes Level.
var levelOp = operation{
	name: "level", inputs: [2]int{2, 2}, w: none, b: none, use: 0, fits: fitsLevel, loop: (*Frame).level, byRow: true,
	cases: []Case{
		{"level", func(b *Builder, x Value, n int) Value { return b.Level(b.Scale(x, 3), b.Act(SiLU, x)) }},
		{"level heads", func(b *Builder, x Value, n int) Value { return b.Level(b.Act(SiLU, x), b.Slice(x, n/4, n/4)) }},
	},
}

// Level scales each head of x, as wide as y, to the root of y's mean square.
func (b *Builder) Level(x, y Value) Value { return b.pointwise(Node{Op: Level, In: []Value{x, y}}) }

func fitsLevel(p *Program, n *Node) error {
	x, y := p.Widths[n.In[0]], p.Widths[n.In[1]]
	if x != p.Widths[n.Out] || y < 1 || x%y != 0 {
		return fmt.Errorf("inputs of %d and %d features, output of %d", x, y, p.Widths[n.Out])
	}
	return nil
}

func (f *Frame) level(n *Node) {
	for r := range f.height(n.Out) {
		x, y, like := f.row(n.In[0], r), f.row(n.Out, r), f.row(n.In[1], r)
		for at := 0; at < len(x); at += len(like) {
			factor := Levelling(x[at:][:len(like)], like)
			for i := range like {
				y[at+i] = float32(factor * float64(x[at+i]))
			}
		}
	}
}

// Levelling is what a head is multiplied by to be as large as another. One that is close to 0 stays small.
func Levelling(head, like []float32) float64 {
	const least = 1e-5 // of a mean square, as transformers has it (modeling_gemma3n.py)
	return math.Sqrt(meanSquare(like) / math.Max(meanSquare(head), least))
}

func meanSquare(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum / float64(len(x))
}
