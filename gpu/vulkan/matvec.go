//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// MaxColumns is the most columns that a workgroup takes at once. More are done by other workgroups.
const MaxColumns = 8

// Glue is what becomes of a pair of matrices' results.
type Glue uint32

// Glues.
const (
	Store        Glue = iota // one matrix: stored as it is
	SwiGLU                   // act(gate)·up
	SwiGLUToInt8             // the same, quantised
)

// MatVec is y[c] = W·x[c] for rows c of activations, with what stands before and after it. Addresses of 0 are of what
// is not wanted.
type MatVec struct {
	W       *Matrix
	Columns int
	Count   uint64 // of a uint32: how many of the columns are there; the others are not stored
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

	// Halves is memory of HalfBytes for each column: weights and activations may be rounded to half precision, these go
	// there, and be multiplied by whatever the device has for that. The bits of a column are then the same among any
	// number of others, but other ones.
	Halves  uint64
	Experts *Choice // then W.Address is of the addresses of the experts' matrices, all like W

	// Groups is how many workgroups to use; 0: one for each tile of rows.
	Groups int
	Tiles  int // of rows a workgroup owns at once; 0: one, or a pair
}

// extras is what matvec.comp calls it.
func (m *MatVec) extras() (bits uint32) {
	if m.Bias != 0 {
		bits |= 1
	}
	if m.Residual != 0 {
		bits |= 2
	}
	return bits
}

// columns is how many columns a workgroup takes at once.
func (m *MatVec) columns() int { return min(m.Columns, MaxColumns) }

// Fits says whether the device has the shared memory for it. The norm needs most: see Norm for one on its own.
func (k *Kernels) Fits(m *MatVec) bool {
	n := k.threads(m)
	return n > 0 && m.shared(n) <= k.d.Facts.Shared
}

// threads is one slot of 32 for each segment, within the device's limits. It is no part of the bits.
func (k *Kernels) threads(m *MatVec) uint32 {
	summed := uint32(m.summed())
	slots := min(uint32((m.W.kTiles()+m.W.Segment-1)/m.W.Segment), k.d.Facts.Invocations/32/summed)
	for slots > 1 && m.shared(32*slots*summed) > k.d.Facts.Shared {
		slots--
	}
	return 32 * slots * summed
}

// summed is how many experts a workgroup adds up; 1: none.
func (m *MatVec) summed() int {
	if m.Experts == nil || m.Experts.Shares == 0 {
		return 1
	}
	return m.Experts.Share
}

func (m *MatVec) tiles() uint32 {
	switch {
	case m.Tiles != 0:
		return uint32(m.Tiles)
	case m.W.Pair:
		return 2
	}
	return 1
}

// shared is the bytes of shared memory, as matvec.comp says.
func (m *MatVec) shared(threads uint32) uint32 {
	n := threads*m.tiles()*uint32(m.columns())*4 + 64
	if m.Gain != 0 {
		n += m.prologue()
	}
	return n
}

// prologue is the bytes that activations take in shared memory, with the sums of their blocks.
func (m *MatVec) prologue() uint32 {
	columns, k := uint32(m.columns()*m.summed()), uint32(m.W.kTiles()*tileCols)
	if m.W.float() {
		return columns * (k*4 + k/8)
	}
	return columns * (k*5/4 + k/8)
}

func (k *Kernels) checkMatVec(m *MatVec) error {
	switch {
	case m.Columns < 1:
		return errors.New("no columns")
	case m.Experts != nil && m.Columns != m.Experts.columns():
		return fmt.Errorf("experts take %d columns, want %d", m.Columns, m.Experts.columns())
	case m.Experts != nil && (m.Gain != 0 && m.Experts.Grouped > 0 || m.Residual != 0 && m.Experts.Shares == 0):
		return errors.New("gathered rows have no norm, and experts no residual unless they are summed")
	case m.summed() > 1 && (m.Experts.Grouped > 0 || m.Gain != 0 || m.W.Pair || m.Tiles > 1):
		return errors.New("experts are summed row by row, without a norm, of one matrix each")
	case m.Bias == 0 && m.UpBias != 0 || m.Bias != 0 && m.W.Pair != (m.UpBias != 0):
		return errors.New("a pair of matrices has two biases or none")
	case (m.Glue != Store) != m.W.Pair:
		return errors.New("a pair of matrices, and no other, needs a glue")
	case m.W.Pair && m.tiles() != 2:
		return errors.New("a pair of matrices is two tiles")
	case m.W.float() && m.Gain == 0 && m.Columns > 1 && m.XStride != PaddedWidth(m.W.Cols):
		return fmt.Errorf("rows of activations are %d values apart, want %d", m.XStride, PaddedWidth(m.W.Cols))
	case m.XStride%4 != 0:
		return fmt.Errorf("rows of %d values do not begin at multiples of 16 bytes", m.XStride)
	case !k.Fits(m):
		return fmt.Errorf("%d bytes of shared memory are needed, the device has %d",
			m.shared(k.threads(m)), k.d.Facts.Shared)
	}
	return nil
}

// MatVec records a mat-vec. A barrier before it makes its inputs visible.
func (k *Kernels) MatVec(r *vk.Recording, m *MatVec) error {
	if err := k.checkMatVec(m); err != nil {
		return fmt.Errorf("%s %d×%d: %w", m.W.Type, m.W.Rows, m.W.Cols, err)
	}
	if m.Experts != nil && m.Experts.Grouped > MaxColumns {
		if _, wide := k.mulOf(m); wide == 0 {
			return fmt.Errorf("%s: experts take at most %d columns here", m.W.Type, MaxColumns)
		}
	}
	if module, wide := k.halfMul(m); wide > 0 {
		return k.matMulHalves(r, m, module, wide)
	}
	if mul, wide := k.mulOf(m); wide > 0 {
		return k.matMul(r, m, mul, wide)
	}
	if module, ok := k.floatMul(m); ok {
		return k.matMulFloat(r, m, module)
	}
	f := formats[m.W.Type]
	module := f.dot
	if k.Plain {
		module = f.plain
	}
	c := shaders.MatvecConstants{Threads: k.threads(m), Ktiles: uint32(m.W.kTiles()), Segment: uint32(m.W.Segment),
		Columns: uint32(m.columns()), Tiles: m.tiles(), Epilogue: uint32(m.Glue), Act: uint32(max(m.Act, ir.SiLU))}
	if m.Gain != 0 {
		c.Prologue = 1
	} else if m.Columns == 1 && m.shared(c.Threads)+m.prologue() <= k.d.Facts.Shared {
		c.Prologue = 2
	}
	c.Extras = m.extras()
	p := shaders.MatvecPush{Weights: m.W.Address, X: m.X, Y: m.Y, Gain: m.Gain, Bias: m.Bias, UpBias: m.UpBias,
		Residual: m.Residual, Count: m.Count, Rows: uint32(m.W.Rows), Width: uint32(m.W.Cols),
		XStride: uint32(m.XStride), YStride: uint32(m.YStride), Eps: m.Eps, Columns: uint32(m.Columns)}
	columnGroups := (m.Columns + MaxColumns - 1) / MaxColumns
	c.Summed = uint32(m.summed())
	if e := m.Experts; e != nil {
		c.Groups, columnGroups = e.groups(), e.Entries
		p.Chosen, p.Share, p.Shares = e.List, uint32(e.Share), e.Shares
	} else if columnGroups > 1 {
		c.Groups = 1
	}
	kernel, err := k.kernel(module, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &p)
	groups := (m.W.rowTiles() + int(c.Tiles) - 1) / int(c.Tiles)
	if m.Groups > 0 {
		groups = min(groups, m.Groups)
	}
	r.Dispatch(uint32(groups), uint32(columnGroups), 1)
	return nil
}

// Project is MatVec of normalised rows. The norm is part of it for one row, where shared memory has room and few
// workgroups would repeat it; else scratch takes the normalised rows first: QuantisedBytes each, or PaddedWidth
// float32. The bits are the same.
func (k *Kernels) Project(r *vk.Recording, m MatVec, scratch uint64) error {
	const mostGroups = 512 // a norm of 4096 costs each of them a µs
	if m.Columns == 1 && m.W.rowTiles()/int(m.tiles()) <= mostGroups && k.Fits(&m) {
		return k.MatVec(r, &m)
	}
	err := k.Norm(r, &Norm{X: m.X, Y: scratch, Gain: m.Gain, Width: m.W.Cols, XStride: m.XStride,
		Stride: PaddedWidth(m.W.Cols), Rows: m.Columns, Eps: m.Eps, Quantise: !m.W.float()})
	if err != nil {
		return err
	}
	r.Barrier()
	m.X, m.XStride, m.Gain = scratch, PaddedWidth(m.W.Cols), 0
	return k.MatVec(r, &m)
}

// Pack records the packing of rows as a file has them, or Recode makes them, at address file, into a matrix; first is
// the row of the matrix that they begin at, a multiple of 32. Of a pair, up says which of the two it is.
func (k *Kernels) Pack(r *vk.Recording, m *Matrix, file uint64, first, rows int, up bool) error {
	rowBytes, err := UploadBytes(m.Type, m.Cols)
	if err != nil {
		return err
	}
	if first%tileRows != 0 || first+rows > m.Rows {
		return fmt.Errorf("rows %d to %d of %d: want whole tiles of %d rows", first, first+rows, m.Rows, tileRows)
	}
	kernel, err := k.kernel(formats[m.Type].pack, nil)
	if err != nil {
		return err
	}
	p := &shaders.RepackPush{File: file, Tiles: m.Address, Rows: uint32(rows), RowBytes: uint32(rowBytes),
		First: uint32(first / tileRows), Step: 1}
	if m.Pair {
		p.First, p.Step = 2*p.First, 2
		if up {
			p.First++
		}
	}
	vk.Use(r, kernel, p)
	r.Dispatch(uint32(m.kTiles()), uint32((rows+tileRows-1)/tileRows), 1)
	return nil
}

// Embed records y[i] = row id[i] of m as float32, for n int32 ids. One below 0, -1-j, stands for drawn[j].
func (k *Kernels) Embed(r *vk.Recording, m *Matrix, ids, drawn, y uint64, yStride, n int) error {
	kernel, err := k.kernel(formats[m.Type].lookup, nil)
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.EmbedPush{Weights: m.Address, Ids: ids, Drawn: drawn, Y: y,
		Width: uint32(m.Cols), YStride: uint32(yStride), Tiles: uint32(m.kTiles())})
	r.Dispatch(uint32((m.Cols+255)/256), uint32(n), 1)
	return nil
}

// Norm is the RMS norm of rows, or none where Gain is 0, to float32 or quantised rows.
type Norm struct {
	X, Y, Gain             uint64
	Width, XStride, Stride int // in float32; Stride is of float32 results, at least PaddedWidth(Width)
	Rows                   int
	Eps                    float32
	Quantise               bool
}

// Norm records a norm.
func (k *Kernels) Norm(r *vk.Recording, n *Norm) error {
	c := shaders.NormConstants{Threads: min(512, k.d.Facts.Invocations), Ktiles: uint32(tiles(n.Width))}
	if n.Gain != 0 {
		c.Norm = 1
	}
	if n.Quantise {
		c.Quantise = 1
	}
	kernel, err := k.kernel(shaders.Norm, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.NormPush{X: n.X, Y: n.Y, Gain: n.Gain, Width: uint32(n.Width),
		XStride: uint32(n.XStride), YStride: uint32(n.Stride), Eps: n.Eps})
	r.Dispatch(uint32(n.Rows), 1, 1)
	return nil
}

// argMaxParts is the workgroups that share a row.
const argMaxParts = 64

// ArgMaxScratch is the bytes that ArgMax needs for so many rows.
func ArgMaxScratch(rows int) uint64 { return uint64(rows) * argMaxParts * 8 }

// ArgMax records the index of the largest of each row's values, as uint32, the first of equal ones, to ids and to a
// second place, unless that is 0.
func (k *Kernels) ArgMax(r *vk.Recording, x, ids, second, scratch uint64, width, stride, rows int) error {
	first, err := k.kernel(shaders.Argmax, shaders.ArgmaxConstants{}.List())
	if err != nil {
		return err
	}
	join, err := k.kernel(shaders.Argmax, shaders.ArgmaxConstants{Join: 1}.List())
	if err != nil {
		return err
	}
	vk.Use(r, first, &shaders.ArgmaxPush{X: x, Y: scratch, Width: uint32(width), XStride: uint32(stride)})
	r.Dispatch(argMaxParts, uint32(rows), 1)
	r.Barrier()
	vk.Use(r, join, &shaders.ArgmaxPush{X: scratch, Y: ids, Copy: second, Width: argMaxParts, XStride: argMaxParts})
	r.Dispatch(1, uint32(rows), 1)
	return nil
}
