package kernel

import "github.com/sluice-ai/sluice/internal/ir"

// MostRanks is the sum of the ranks of a row's adapters that Adapt has room for, each rounded up to whole vectors.
const MostRanks = ir.MostRank

// AdaptParts is into how many parts Adapt cuts a row of so many features at most, for as many workgroups.
func AdaptParts(in int) int { return min(8, (in+511)/512) }

// Applied is an adapter of a row: where its Changes begin, by site, and what they are multiplied by. One without an
// address ends a row's list.
type Applied struct {
	Changes uint64
	Scale   float32
	_       uint32
}

// AppliedBytes is the size of an Applied.
const AppliedBytes = 16

// Change is where a site's two factors lie on the device, as ir.Update has them. One of rank 0 changes nothing.
type Change struct {
	A, B   uint64
	Rank   uint32
	Scale  float32
	Halves uint32 // bit 0: A is of halves; bit 1: B is
	_      uint32
}

// ChangeBytes is the size of a Change.
const ChangeBytes = 32

// Adapt adds what adapters make of rows: y[r] = a[r] + Σ s·B(A·x[r]), over the adapters of the row in their order. It
// is two launches: the first one leaves A·x in Between, by row, part of x, and rank; the second one, Up, does the rest.
// Y may be A. Every sum has an order of its own row.
// Wide: they are the arguments of a kernel.
type Adapt struct {
	Up      bool
	Site    int
	In, Out int    // features of x and y; In 1: the token's row of the first factor is taken
	X, A, Y Floats // X.At 0: IDs choose
	Between uint64 // [row][AdaptParts][MostRanks] of float32
	Lists   uint64 // of uint32, by row of the step: its first Applied
	Applied uint64
	Numbers uint64 // of uint32: row r is row Numbers[r] of the step; 0: row r
	IDs     uint64 // of int32, as Embed's
	Drawn   uint64
	Rows    int
	Count   uint64 // address of a uint32, how many of the rows are in use
}

// Parts is into how many parts x is cut.
func (a *Adapt) Parts() int { return AdaptParts(a.In) }

// Uses implements Launch.
func (a *Adapt) Uses(u *Uses) {
	between := 4 * a.Rows * a.Parts() * MostRanks
	if !a.Up {
		u.readFloats(a.X.At, a.Rows, a.X.Stride, a.In)
		u.writeBytes(a.Between, between)
		return
	}
	u.readBytes(a.Between, between)
	u.readFloats(a.A.At, a.Rows, a.A.Stride, a.Out)
	u.writeFloats(a.Y.At, a.Rows, a.Y.Stride, a.Out)
}
