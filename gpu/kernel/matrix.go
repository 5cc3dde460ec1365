package kernel

import (
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// A tile is TileRows × TileCols weights.
const (
	TileRows = 32
	TileCols = 256
)

// MaxColumns is the most columns that a workgroup of a mat-vec takes at once. More are done by other workgroups.
const MaxColumns = 8

// FewColumns is the most columns that mat-vec kernels take, in groups of MaxColumns. More are for mat-mat kernels.
const FewColumns = 16

// Matrix is weights in tiles. Its memory belongs to whoever made it.
type Matrix struct {
	Type       quant.Type
	Rows, Cols int
	// Pair says that tiles of two matrices of Rows × Cols alternate: gate, up, gate, up, …
	Pair    bool
	Segment int    // tiles along k that are summed before the sums of segments are: it decides the last bits of results
	Address uint64 // of the first tile

	Float     bool // it multiplies float32 rows, not quantised ones
	TileBytes int  // size of a tile in its driver's layout
}

// KTiles is the tiles of a row.
func (m *Matrix) KTiles() int { return Tiles(m.Cols) }

// RowTiles is the tiles of a column, of both matrices of a pair.
func (m *Matrix) RowTiles() int {
	n := (m.Rows + TileRows - 1) / TileRows
	if m.Pair {
		n *= 2
	}
	return n
}

// Bytes is the memory that the matrix takes.
func (m *Matrix) Bytes() uint64 {
	return uint64(m.RowTiles()) * uint64(m.KTiles()) * uint64(m.TileBytes)
}

// Tiles is the number of tiles that hold some columns.
func Tiles(cols int) int { return (cols + TileCols - 1) / TileCols }

// QuantisedBytes is the size of a row of quantised activations of a width.
func QuantisedBytes(width int) int { return Tiles(width) * TileCols * 5 / 4 }

// PaddedWidth is the float32 values that a row of activations of a width takes: those past its end are zero.
func PaddedWidth(width int) int { return Tiles(width) * TileCols }

// HalfBytes is the size of a row of activations of a width in half precision, with its scale.
func HalfBytes(width int) int { return 2*PaddedWidth(width) + 4 }

// Pack writes rows of weights, as a file has them or as the driver recodes them, into the tiles of a matrix.
type Pack struct {
	W           *Matrix
	File        uint64 // of the rows
	First, Rows int    // First is the row of the matrix that they begin at, a multiple of TileRows
	Up          bool   // the rows are of the second matrix of a pair
}

// Uses implements Launch.
func (p *Pack) Uses(u *Uses) { u.writeAll(p.W.Address) }

// Embed is y[i] = row id[i] of W as float32. An id below 0, -1-j, stands for Drawn[j], the token that was drawn for
// wanted row j of the step before.
type Embed struct {
	W             *Matrix
	IDs, Drawn, Y uint64 // IDs of int32
	YStride, Rows int    // YStride in float32
}

// Uses implements Launch.
func (e *Embed) Uses(u *Uses) {
	u.readAll(e.Drawn)
	u.writeFloats(e.Y, e.Rows, e.YStride, min(PaddedWidth(e.W.Cols), e.YStride))
}

// Glue is the operation on the results of a pair of matrices.
type Glue uint32

// Glues.
const (
	Store        Glue = iota // one matrix: stored as it is
	SwiGLU                   // act(gate)·up
	SwiGLUToInt8             // the same, quantised
)

// MatVec is y[c] = W·x[c] for rows c of activations, with what stands before and after it. An address of 0 stands for
// an operand that is not wanted.
// Wide: they are the arguments of a kernel.
type MatVec struct {
	W       *Matrix
	Columns int
	Count   uint64 // of a uint32: how many of the columns are in use; the others are not stored
	// X is quantised rows; for float weights, float32 rows of PaddedWidth values, zero past their end; and float32 rows,
	// XStride apart, that are normalised first where Gain is given.
	X       uint64
	XStride int // of float32 rows, a multiple of 4
	Gain    uint64
	Eps     float32
	Y       uint64 // float32 rows, or quantised ones
	YStride int    // of float32 rows, and of Residual
	Glue    Glue
	Act     ir.Act // of a pair; 0: SiLU
	Bias    uint64 // added to y; of a pair, to gate before it is activated. Of experts, a row for each
	UpBias  uint64 // where a pair has a Bias
	// Residual is rows like y that are added; it may be Y.
	Residual uint64

	// Halves is memory of HalfBytes for each column; 0: none. With it, weights and activations may be rounded to half
	// precision, activations are stored there, and the device's matrix units may multiply. A column's bits still do not
	// depend on the other columns, but differ from those without Halves.
	Halves  uint64
	Experts *Choice // nil: none. Else W.Address is a table of addresses of matrices, one an expert, all like W

	// Groups is how many workgroups to use; 0: one for each tile of rows.
	Groups int
	Tiles  int // tiles of rows that a workgroup computes at once; 0: one, or two of a pair
}

// RowTilesAtOnce is how many tiles of rows a workgroup computes at once.
func (m *MatVec) RowTilesAtOnce() int {
	switch {
	case m.Tiles != 0:
		return m.Tiles
	case m.W.Pair:
		return 2
	}
	return 1
}

// Uses implements Launch.
func (m *MatVec) Uses(u *Uses) {
	from, to := m.Columns, m.Columns // rows of x and of y
	if e := m.Experts; e != nil {
		from, to = e.rows()
		u.readBytes(e.List, 4*e.listed())
		if e.Shares != 0 {
			u.readBytes(e.Shares, 4*from)
		}
	}
	switch {
	case m.Gain != 0:
		u.readFloats(m.X, from, m.XStride, m.W.Cols)
	case m.W.Float:
		u.readFloats(m.X, from, PaddedWidth(m.W.Cols), PaddedWidth(m.W.Cols))
	default:
		u.readBytes(m.X, from*QuantisedBytes(m.W.Cols))
	}
	u.readFloats(m.Residual, to, m.YStride, m.W.Rows)
	switch m.Glue {
	case SwiGLUToInt8:
		u.writeBytes(m.Y, to*QuantisedBytes(m.W.Rows))
	case SwiGLU:
		u.writeFloats(m.Y, to, m.YStride, min(PaddedWidth(m.W.Rows), m.YStride))
	default:
		u.writeFloats(m.Y, to, m.YStride, m.W.Rows)
	}
	u.writeBytes(m.Halves, m.Columns*HalfBytes(m.W.Cols))
}

// Norm is the RMS norm of rows, or their mere conversion where Gain is 0, to float32 or quantised rows.
type Norm struct {
	X, Y, Gain             uint64
	Width, XStride, Stride int // in float32; Stride is of float32 results, at least PaddedWidth(Width)
	Rows                   int
	Eps                    float32
	Quantise               bool
}

// Uses implements Launch.
func (n *Norm) Uses(u *Uses) {
	u.readFloats(n.X, n.Rows, n.XStride, n.Width)
	if n.Quantise {
		u.writeBytes(n.Y, n.Rows*QuantisedBytes(n.Width))
	} else {
		u.writeFloats(n.Y, n.Rows, n.Stride, PaddedWidth(n.Width))
	}
}
