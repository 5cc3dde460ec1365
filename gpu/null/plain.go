package null

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Plays implements kernel.Table: all ops run by their reference loops.
func (table) Plays(ir.Op) bool { return true }

// AttentionRows implements kernel.Table.
func (table) AttentionRows() int { return kernel.AttentionRows }

// plains returns the loop of an op that has no kernel, or nil.
func plains(l kernel.Launch) func(*access) {
	if k, ok := l.(*kernel.Plain); ok {
		return bind(plain, k)
	}
	return nil
}

func plain(x *access, k *kernel.Plain) {
	n, rows := k.Node, there(x, k.Count, k.Rows)
	f := ir.Frame{P: k.Program, Values: make([][]float32, len(k.Program.Widths)), Tokens: told[int32](x, k.IDs, rows),
		Weights: vectors{x, k}, Spans: textsOf(x, k.Texts)}
	for i, v := range n.In {
		for r := range rows {
			f.Values[v] = append(f.Values[v], in[float32](x, row(k.In[i].At, r, k.In[i].Stride), k.Program.Widths[v])...)
		}
	}
	width := k.Program.Widths[n.Out]
	f.Values[n.Out] = make([]float32, rows*width)
	f.Run(n)
	for r := range rows {
		copy(out[float32](x, row(k.Y.At, r, k.Y.Stride), width), f.Values[n.Out][r*width:])
	}
}

// textsOf lists the texts of a step as spans.
func textsOf(x *access, at uint64) (all []ir.Span) {
	for ; ; at += kernel.TextBytes {
		t := told[kernel.Text](x, at, 1)[0]
		if t.Rows == 0 {
			return all
		}
		all = append(all, ir.Span{Row: int(t.Row), Rows: int(t.Rows), Pos: int(t.Position),
			Grid: ir.Grid{Height: int(t.Height), Width: int(t.Width)}})
	}
}

// vectors are the weights of a node.
type vectors struct {
	x *access
	k *kernel.Plain
}

// Decode implements ir.Weights.
func (v vectors) Decode(r ir.Ref, i int, to []float32) {
	for j, w := range v.k.Node.Weights() {
		if w == r {
			copy(to, told[float32](v.x, row(v.k.Weights[j], i, len(to)), len(to)))
		}
	}
}
