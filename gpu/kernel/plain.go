package kernel

import "github.com/sluice-ai/sluice/internal/ir"

// Text is rows of one sequence, as Plain and Around are told of them. The list of them ends with one of no rows.
type Text struct{ Row, Rows, Position, Height, Width uint32 }

// TextBytes is the size of a Text.
const TextBytes = 20

// Plain is an op that has no kernel: its loop, of a device that plays them.
type Plain struct {
	Program *ir.Program
	Node    *ir.Node
	In      []Floats // by Node.In
	Y       Floats
	Weights []uint64 // by Node.Weights, vectors
	IDs     uint64   // of int32, by row
	Texts   uint64
	Count   uint64 // how many of the rows there are
	Rows    int
}

// Uses implements Launch.
func (p *Plain) Uses(u *Uses) {
	for i, v := range p.Node.In {
		u.readFloats(p.In[i].At, p.Rows, p.In[i].Stride, p.Program.Widths[v])
	}
	u.writeFloats(p.Y.At, p.Rows, p.Y.Stride, p.Program.Widths[p.Node.Out])
}
