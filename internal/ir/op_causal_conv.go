package ir

import "fmt"

// causalConvOp describes CausalConv.
var causalConvOp = operation{
	name: "causal conv", inputs: [2]int{1, 1}, w: required, b: optional, use: Vector, fits: fitsCausalConv,
	loop: (*Frame).causalConv, keeps: true,
	args: func(n *Node) string {
		if n.Every > 1 {
			return fmt.Sprintf("state=%d every=%d", n.State, n.Every)
		}
		return fmt.Sprintf("state=%d", n.State)
	},
	cases: []Case{
		{"conv", func(b *Builder, x Value, n int) Value { return b.CausalConv(x, "c", 4) }},
		{"conv wide", func(b *Builder, x Value, n int) Value {
			return b.Slice(b.CausalConv(b.Linear(x, "wide", 9*n), "c", 2), 7*n, n)
		}},
		{"conv spread", func(b *Builder, x Value, n int) Value { return b.SpreadConv(x, "c", 3, 4) }},
	},
}

// CausalConv convolves each channel with its weights over the last size positions, and adds the bias if the file has
// one.
func (b *Builder) CausalConv(x Value, name string, size int) Value {
	return b.SpreadConv(x, name, size, 1)
}

// SpreadConv is CausalConv over every so many positions.
func (b *Builder) SpreadConv(x Value, name string, size, every int) Value {
	width := b.Width(x)
	n := Node{Op: CausalConv, In: []Value{x}, W: b.weight(name+".weight", width, size, Vector), B: NoRef}
	if b.Has(name + ".bias") {
		n.B = b.vector(name+".bias", width)
	}
	if every != 1 {
		n.Every = every
	}
	n.State = b.state((size - 1) * every * width)
	return b.add(n, width)
}

func fitsCausalConv(p *Program, n *Node) error {
	w, width := &p.Weights[n.W], p.Widths[n.In[0]]
	if w.Rows != width || w.Cols < 2 {
		return fmt.Errorf("%s is %d×%d, want %d channels of two positions or more", w.Name, w.Rows, w.Cols, width)
	}
	if err := vector(p, n.B, width); err != nil {
		return err
	}
	if n.Every < 0 || n.Every == 1 {
		return fmt.Errorf("every %d positions, want 0 for each", n.Every)
	}
	if err := fitsState(p, n, (w.Cols-1)*max(n.Every, 1)*width); err != nil {
		return err
	}
	return sameWidths(p, n)
}

// causalConv keeps the inputs of the last positions, the oldest first.
func (f *Frame) causalConv(n *Node) {
	w, state, width := f.table(n.W), f.States[n.State], f.P.Widths[n.Out]
	bias := f.vector(n.B, width, 0)
	for i, span := range f.Spans {
		for j := range span.Rows {
			x, y := f.row(n.In[0], span.Row+j), f.row(n.Out, span.Row+j)
			seen := append(append([]float32(nil), state.Before(i, span.Pos+j)...), x...)
			Convolve(y, seen, w, bias, max(n.Every, 1))
			copy(state.After(i, span.Pos+j), seen[width:])
		}
	}
}

// Convolve computes a row of so many channels from every so many of the last positions of each, the oldest first.
func Convolve(y, seen, w, bias []float32, every int) {
	size := len(w) / len(y)
	for c := range y {
		sum := float64(bias[c])
		for k := range size {
			sum += float64(w[c*size+k]) * float64(seen[k*every*len(y)+c])
		}
		y[c] = float32(sum)
	}
}
