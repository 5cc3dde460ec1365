package kernel

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Formula is the function that Each computes. All ops of internal/ir that work value by value have one.
type Formula uint32

// Formulas, numbered as kernels know them.
const (
	Copy     Formula = iota // a: Numbers choose its rows, A's address and Width the columns
	Sum                     // a + b
	Product                 // a·b
	Scaled                  // Factor·a
	SoftCap                 // Factor·tanh(a/Factor)
	Activate                // act(a)
	Gate                    // act(a)·b, or ir.Clamped of both
)

// Each is y[r][i] = f(a[r][i], b[r][i]) for float32 rows. Y may be A or B, unless rows have Numbers. Strides are in
// float32.
// Wide: they are the arguments of a kernel.
type Each struct {
	Formula Formula
	Act     ir.Act // of Activate and Gate
	Factor  float32

	A, B, Y                   uint64
	AStride, BStride, YStride int
	Numbers                   uint64 // of uint32: row r takes row Numbers[r] of a; 0: row r
	Numbered                  int    // rows of a that Numbers choose among
	Share                     int    // consecutive rows of y that take the same row of a; 0: 1
	Width                     int
	BWidth                    int // values of a row of b, the last of which stands for all that follow; 0: Width
	Filled                    int // values of y's rows that are written: those past Width are zero; 0: Width
	Rows                      int
	Count                     uint64 // address of a uint32, how many of the rows are in use; 0: all
}

// Uses implements Launch.
func (e *Each) Uses(u *Uses) {
	share := max(1, e.Share)
	from := (e.Rows + share - 1) / share
	if e.Numbers != 0 {
		from = e.Numbered
	}
	u.readFloats(e.A, from, e.AStride, e.Width)
	width, rows := e.BWidth, e.Rows
	if width == 0 {
		width = e.Width
	}
	if e.BStride == 0 {
		rows = 1
	}
	u.readFloats(e.B, rows, e.BStride, width)
	u.writeFloats(e.Y, e.Rows, e.YStride, max(e.Width, e.Filled))
}

// GroupNorm is every norm of internal/ir: RMS or layer, over groups of features, with or without weight and bias. Norm
// is faster where it applies and can quantise, but adds in another order, so their results differ in the last bits. Y
// may be X.
type GroupNorm struct {
	X, Y, Gain, Bias       uint64 // Gain and Bias: 0 for none
	GainByRow, BiasByRow   bool   // they have the row's width, not a group's
	Layer                  bool   // subtract the mean
	Width, Group           int    // of a row, of a group
	XStride, YStride, Rows int    // strides in float32
	Eps                    float32
	Count                  uint64 // address of a uint32, how many of the rows are in use; 0: all
}

// Uses implements Launch.
func (n *GroupNorm) Uses(u *Uses) {
	u.readFloats(n.X, n.Rows, n.XStride, n.Width)
	u.writeFloats(n.Y, n.Rows, n.YStride, n.Width)
}

// Turn rotates the heads of rows (RoPE), by angles that are laid out as Attention's. Y may be X.
type Turn struct {
	X, Y, Angles          uint64
	Heads, Features, Dims int // Dims of a head's Features rotate, from the first
	Interleaved           bool
	XStride, YStride      int // in float32
	Rows                  int
	Count                 uint64 // address of a uint32, how many of the rows are in use; 0: all
}

// Uses implements Launch.
func (t *Turn) Uses(u *Uses) {
	u.readFloats(t.X, t.Rows, t.XStride, t.Heads*t.Features)
	u.writeFloats(t.Y, t.Rows, t.YStride, t.Heads*t.Features)
}

// Angles appends, for each pair of features that is rotated, cosine and sine of its angle times Mscale. They are
// computed in double precision and rounded at the end. divisors is the weight of ir.RoPE, by which angles are divided;
// nil: ones.
func Angles(to []float32, a *ir.RoPEArgs, divisors []float32, at ir.Place) []float32 {
	for i := range a.Freq {
		angle := a.Angle(i, at)
		if divisors != nil {
			angle /= float64(divisors[i])
		}
		sin, cos := math.Sincos(angle)
		to = append(to, float32(cos*float64(a.Mscale)), float32(sin*float64(a.Mscale)))
	}
	return to
}

// HeadCopy is y[r][h·YHead + i] = x[r][h·XHead + i] for i below Width, in each head of rows.
type HeadCopy struct {
	X, Y                uint64 // of the first value that is copied
	Heads, Width        int
	XHead, YHead        int // features of a head
	XStride, YStride, N int // strides in float32; N rows
	Count               uint64
}

// Uses implements Launch.
func (c *HeadCopy) Uses(u *Uses) {
	u.readFloats(c.X, c.N, c.XStride, (c.Heads-1)*c.XHead+c.Width)
	u.writeFloats(c.Y, c.N, c.YStride, (c.Heads-1)*c.YHead+c.Width)
}

// HeadLinear multiplies each head of rows by a matrix of its own. W holds the matrices of all heads, one after the
// other.
type HeadLinear struct {
	W                *Matrix
	X, Y             uint64 // float32 rows
	Heads            int
	XStride, YStride int // in float32
	Rows             int
	Count            uint64 // address of a uint32, how many of the rows are in use; 0: all
}

// Uses implements Launch.
func (h *HeadLinear) Uses(u *Uses) {
	u.readFloats(h.X, h.Rows, h.XStride, h.Heads*h.W.Cols)
	u.writeFloats(h.Y, h.Rows, h.YStride, h.W.Rows)
}

// Finite looks for NaN and infinity in rows of float32. Status, a uint32, is raised to 1 + the number of a row that has
// one, unless it is higher already: so launches that share a Status need no order.
type Finite struct {
	X, Status, Count    uint64 // Count: of a uint32, how many of the rows are in use
	Width, Stride, Rows int    // Stride in float32
}

// Uses implements Launch.
func (f *Finite) Uses(u *Uses) { u.readFloats(f.X, f.Rows, f.Stride, f.Width) }
