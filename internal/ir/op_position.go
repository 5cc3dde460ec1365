package ir

import "fmt"

// positionOp describes Position.
var positionOp = operation{
	name: "position", inputs: [2]int{1, 1}, w: required, b: none, use: Vector, fits: fitsPosition,
	loop: (*Frame).position, byRow: true,
	cases: []Case{
		{"position", func(b *Builder, x Value, n int) Value { return b.Position(x, "p", 512) }},
	},
}

// Position adds learned position vectors, of which there are so many.
func (b *Builder) Position(x Value, name string, positions int) Value {
	b.p.Positions = positions
	w := b.weight(name+".weight", positions, b.Width(x), Vector)
	return b.add(Node{Op: Position, In: []Value{x}, W: w, B: NoRef}, b.Width(x))
}

func fitsPosition(p *Program, n *Node) error {
	w := &p.Weights[n.W]
	if w.Cols != p.Widths[n.Out] || w.Rows != p.Positions {
		return fmt.Errorf("%s is %d×%d, want %d×%d", w.Name, w.Rows, w.Cols, p.Positions, p.Widths[n.Out])
	}
	return sameWidths(p, n)
}

func (f *Frame) position(n *Node) {
	width, table := f.P.Widths[n.Out], f.table(n.W)
	for _, span := range f.Spans {
		for i := range span.Rows {
			learned := table[(span.Pos+i)*width:][:width]
			for j, x := range f.row(n.In[0], span.Row+i) {
				f.row(n.Out, span.Row+i)[j] = x + learned[j]
			}
		}
	}
}
