package kernel

import "github.com/sluice-ai/sluice/internal/ir"

// Span is the rows of one sequence in a step, as kernels read it.
type Span struct {
	Row, Rows uint32
	Position  uint32 // of the first
	Table     uint32 // index in the block tables of its sequence's first block
	Kept      uint32 // how many of Rows, from the first, leave states: those behind them are of guessed tokens
}

// SpanBytes is the size of a Span.
const SpanBytes = 20

// Recurrent is the arguments of kernels that continue recurrent states: where a layer's states are, by block, and which
// spans of rows continue them.
type Recurrent struct {
	States uint64
	Spans  uint64 // of Span
	N      int    // spans
	Tables uint64 // of uint32 block numbers
}

// Conv is a CausalConv. Y is not X.
type Conv struct {
	X, Y, Weights, Bias uint64 // Weights [Channels][Size]; Bias 0: none
	Channels, Size      int
	XStride, YStride    int // in float32
	Rows                int // most rows of a span
	Of                  Recurrent
}

// Uses implements Launch.
func (c *Conv) Uses(u *Uses) {
	u.readFloats(c.X, c.Rows, c.XStride, c.Channels)
	u.readAll(c.Of.States)
	u.writeFloats(c.Y, c.Rows, c.YStride, c.Channels)
	u.writeAll(c.Of.States)
}

// Floats is rows of float32.
type Floats struct {
	At     uint64
	Stride int
}

// Scan is an SSMScan or a DeltaRule.
type Scan struct {
	Args               *ir.ScanArgs
	Delta              bool      // it is a DeltaRule
	In                 [5]Floats // q, k, v, δ, β
	Y                  Floats
	Decay, Shift, Skip uint64 // of float32, by head; Skip (the scan's D) 0: none
	Rows               int
	Of                 Recurrent
}

// Uses implements Launch.
func (s *Scan) Uses(u *Uses) {
	a := s.Args
	for i, width := range [...]int{a.Groups * a.KDim, a.Groups * a.KDim, a.Heads * a.VDim, a.Heads, a.Heads} {
		u.readFloats(s.In[i].At, s.Rows, s.In[i].Stride, width)
	}
	u.readAll(s.Of.States)
	u.writeFloats(s.Y.At, s.Rows, s.Y.Stride, a.Heads*a.VDim)
	u.writeAll(s.Of.States)
}
