package kernel

import "github.com/sluice-ai/sluice/internal/ir"

// Text is the rows of one sequence in a step, as Plain and Around read it: the first row, how many they are, the
// position of the first, and, of a picture, its height and width in rows. A list of them ends with one that has no
// rows.
type Text struct{ Row, Rows, Position, Height, Width uint32 }

// TextBytes is the size of a Text.
const TextBytes = 20

// Plain computes an op that has no kernel by its reference loop, on a device for which Table.Plays says yes.
type Plain struct {
	Program *ir.Program
	Node    *ir.Node
	In      []Floats // by Node.In
	Y       Floats
	Weights []uint64 // by Node.Weights, vectors
	IDs     uint64   // of int32, by row
	Texts   uint64
	Count   uint64 // of a uint32, how many of the rows are in use
	Rows    int
}

// Uses implements Launch.
func (p *Plain) Uses(u *Uses) {
	for i, v := range p.Node.In {
		u.readFloats(p.In[i].At, p.Rows, p.In[i].Stride, p.Program.Widths[v])
	}
	u.writeFloats(p.Y.At, p.Rows, p.Y.Stride, p.Program.Widths[p.Node.Out])
}
