package ir

import "fmt"

// previousOp describes Previous.
var previousOp = operation{
	name: "previous", inputs: [2]int{1, 1}, w: none, b: none, use: 0, fits: fitsPrevious,
	loop: (*Frame).previous, keeps: true,
	args: func(n *Node) string { return fmt.Sprintf("state=%d", n.State) },
	cases: []Case{
		{"previous", func(b *Builder, x Value, n int) Value { return b.Add(b.Scale(x, -0.5), b.Previous(x)) }},
		{"previous wide", func(b *Builder, x Value, n int) Value {
			return b.Slice(b.Previous(b.Linear(x, "wide", 9*n)), 7*n, n)
		}},
	},
}

// Previous is x of the row before, which RWKV calls a token shift. The state is x of the last row.
func (b *Builder) Previous(x Value) Value {
	n := Node{Op: Previous, In: []Value{x}, W: NoRef, B: NoRef, State: b.state(b.Width(x))}
	return b.add(n, b.Width(x))
}

func fitsPrevious(p *Program, n *Node) error {
	if err := fitsState(p, n, p.Widths[n.In[0]]); err != nil {
		return err
	}
	return sameWidths(p, n)
}

func (f *Frame) previous(n *Node) {
	state := f.States[n.State]
	for i, span := range f.Spans {
		for j := range span.Rows {
			copy(f.row(n.Out, span.Row+j), state.Before(i, span.Pos+j))
			copy(state.After(i, span.Pos+j), f.row(n.In[0], span.Row+j))
		}
	}
}
