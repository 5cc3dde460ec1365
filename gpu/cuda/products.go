//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// suffixes are the ends of the names of modules for a layout of weights.
var suffixes = [tile.Layouts]string{tile.Q4_0: "_q4_0", tile.Q8_0: "_q8_0", tile.Q4_K: "_q4_k", tile.Q6_K: "_q6_k",
	tile.F16: "_f16", tile.BF16: "_bf16", tile.F32: "_f32", tile.Split: "_split", tile.SplitLow: "_split_low"}

// moduleOf is the name of the module of some kernels for a type of weights.
func moduleOf(kernels string, t quant.Type) string { return kernels + suffixes[tile.Of(t)] }

type packArgs struct {
	file, tiles                 uint64
	rows, rowBytes, first, step uint32
}

func (k *Kernels) pack(r *recording, p *kernel.Pack) error {
	rowBytes, err := tile.UploadBytes(p.W.Type, p.W.Cols)
	if err != nil {
		return err
	}
	first, step, err := tile.Place(p)
	if err != nil {
		return err
	}
	layout := tile.Of(p.W.Type)
	if layout == tile.BF16 {
		layout = tile.F16
	}
	args := &packArgs{p.File, p.W.Address, uint32(p.Rows), uint32(rowBytes), uint32(first), uint32(step)}
	grid := [3]uint32{uint32(p.W.KTiles()), parts(p.Rows, kernel.TileRows), 1}
	return launch(k, r, "pack"+suffixes[layout], "pack", grid, 32, 0, args)
}

type embedArgs struct {
	weights, ids, drawn, y     uint64
	width, yStride, tiles, pad uint32
}

func (k *Kernels) embed(r *recording, e *kernel.Embed) error {
	args := &embedArgs{e.W.Address, e.IDs, e.Drawn, e.Y, uint32(e.W.Cols), uint32(e.YStride), uint32(e.W.KTiles()), 0}
	grid := [3]uint32{parts(e.W.Cols, 256), uint32(e.Rows), 1}
	return launch(k, r, moduleOf("embed", e.W.Type), "embed", grid, 64, 0, args)
}

type headCopyArgs struct {
	x, y, count                                  uint64
	heads, width, xHead, yHead, xStride, yStride uint32
}

func (k *Kernels) headCopy(r *recording, c *kernel.HeadCopy) error {
	args := &headCopyArgs{c.X, c.Y, c.Count, uint32(c.Heads), uint32(c.Width), uint32(c.XHead), uint32(c.YHead),
		uint32(c.XStride), uint32(c.YStride)}
	grid := [3]uint32{parts(c.Heads*c.Width, 64), uint32(c.N), 1}
	return launch(k, r, "head_copy", "headCopy", grid, 64, 0, args)
}

type headLinearArgs struct {
	weights, x, y, count                                     uint64
	rows, each, width, tiles, xStride, yStride, columns, pad uint32
}

// headLinear records a kernel.HeadLinear. A row's bits do not depend on other rows.
func (k *Kernels) headLinear(r *recording, h *kernel.HeadLinear) error {
	args := &headLinearArgs{h.W.Address, h.X, h.Y, h.Count, uint32(h.W.Rows), uint32(h.W.Rows / h.Heads), uint32(h.W.Cols),
		uint32(h.W.KTiles()), uint32(h.XStride), uint32(h.YStride), uint32(h.Rows), 0}
	grid := [3]uint32{uint32(h.W.RowTiles()), parts(h.Rows, kernel.MaxColumns), 1}
	threads := 32 * int(min(8, parts(h.W.Cols, 32)))
	return launch(k, r, moduleOf("head_linear", h.W.Type), "headLinear", grid, threads, 0, args)
}

// mostShared is the bytes of shared memory that a block gets on all cards without asking.
const mostShared = 48 << 10

// Wide: they are the arguments of a kernel.
type matVecArgs struct {
	weights, x, y, gain, bias, upBias, residual, count, chosen, shares uint64

	rows, width, kTiles, segment, xStride, yStride, columns, atOnce, share uint32

	eps float32

	tiles, prologue, epilogue, extras, act, groups, summed, _ uint32
}

// matVecShape is how a mat-vec is launched.
type matVecShape struct {
	columns  int // columns that its kernel is compiled for: 1, 2, 4 or 8
	pieces   int // partial sums of a block, each computed by a warp
	prologue uint32
	shared   int
}

// Prologues, as matvec.cu numbers them.
const (
	inPlace = iota
	normalised
	staged
)

// shapeOf chooses the shape of a mat-vec, on which its bits do not depend. limit is the most bytes of shared memory of
// a block; ok is false if the shape needs more.
func shapeOf(m *kernel.MatVec, limit int) (s matVecShape, ok bool) {
	for s.columns = 1; s.columns < m.ColumnsAtOnce(); s.columns *= 2 {
	}
	s.pieces = (m.W.KTiles() + m.W.Segment - 1) / m.W.Segment * m.RowTilesAtOnce() * m.Summed()
	each := kernel.QuantisedBytes(m.W.Cols)
	if m.W.Float {
		each = 4 * kernel.PaddedWidth(m.W.Cols)
	}
	sized := func() int { return 4 * 32 * s.pieces * s.columns }
	s.shared = sized()
	if m.Gain != 0 {
		s.prologue, s.shared = normalised, s.shared+s.columns*(each+32*m.W.KTiles())
		return s, s.shared <= limit
	}
	if with := s.shared + s.columns*m.Summed()*each; with <= min(limit, mostShared) {
		s.prologue, s.shared = staged, with
		return s, true
	}
	if s.columns > 1 {
		s.columns = kernel.MaxColumns
	}
	s.shared = sized()
	return s, s.shared <= limit
}

// matVec records a kernel.MatVec, by the kernel that takes so many columns. A barrier before it makes its inputs
// visible.
func (k *Kernels) matVec(r *recording, m *kernel.MatVec) error {
	limit, wide, halfWide := k.c.Facts.Shared, k.wideOf(m), k.halfWideOf(m)
	s, ok := shapeOf(m, limit)
	err := m.Check()
	switch {
	case err != nil:
	case halfWide > 0:
		return k.matMulHalves(r, m, halfWide)
	case wide > 0:
		return k.matMul(r, m, wide)
	case !ok:
		err = fmt.Errorf("%d bytes of shared memory are needed, the device has %d", s.shared, limit)
	case m.Experts != nil && m.Experts.Grouped > kernel.MaxColumns:
		err = fmt.Errorf("experts take at most %d columns here", kernel.MaxColumns)
	default:
		return k.fewColumns(r, m, s)
	}
	return fmt.Errorf("%s %d×%d: %w", m.W.Type, m.W.Rows, m.W.Cols, err)
}

// fewColumns records a MatVec by matvec.cu.
func (k *Kernels) fewColumns(r *recording, m *kernel.MatVec, s matVecShape) error {
	a := &matVecArgs{weights: m.W.Address, x: m.X, y: m.Y, gain: m.Gain, bias: m.Bias, upBias: m.UpBias,
		residual: m.Residual, count: m.Count, rows: uint32(m.W.Rows), width: uint32(m.W.Cols), kTiles: uint32(m.W.KTiles()),
		segment: uint32(m.W.Segment), xStride: uint32(m.XStride), yStride: uint32(m.YStride), columns: uint32(m.Columns),
		atOnce: uint32(m.ColumnsAtOnce()), share: 1, eps: m.Eps, tiles: uint32(m.RowTilesAtOnce()), prologue: s.prologue,
		epilogue: uint32(m.Glue), extras: uint32(m.Extras()), act: uint32(max(m.Act, ir.SiLU)), summed: uint32(m.Summed())}
	columnGroups := parts(m.Columns, kernel.MaxColumns)
	if e := m.Experts; e != nil {
		a.groups, columnGroups = uint32(e.Grouping()), uint32(e.Entries)
		a.chosen, a.share, a.shares = e.List, uint32(max(1, e.Share)), e.Shares
	} else if columnGroups > 1 {
		a.groups = uint32(kernel.ByColumns)
	}
	groups := parts(m.W.RowTiles(), m.RowTilesAtOnce())
	if m.Groups > 0 {
		groups = min(groups, uint32(m.Groups))
	}
	name := fmt.Sprintf("matVec%d", s.columns)
	if s.prologue != inPlace {
		name += "Staged"
	}
	threads, grid := 32*min(s.pieces, 16), [3]uint32{groups, columnGroups, 1}
	return launch(k, r, moduleOf("matvec", m.W.Type), name, grid, threads, s.shared, a)
}
