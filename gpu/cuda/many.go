//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Blocks of matmul.cu and matmul_half.cu take columnsAcross columns, times wide, and tall outputs.
const (
	tall          = 128
	columnsAcross = 32
)

// Wide: they are the arguments of a kernel.
type matMulArgs struct {
	weights, x, y, bias, residual, count, chosen uint64

	rows, yStride, columns, kTiles, segment, share, epilogue, extras, act, groups uint32
}

// manyStage is what a stage of matmul.cu takes: 16-byte words of each tile, and the bytes that are made ready of rows
// and of columns.
var manyStage = [tile.Layouts]struct{ words, row, column int }{tile.Q4_0: {words: 96}, tile.Q8_0: {words: 160},
	tile.Q4_K: {104, 8, 8}, tile.Q6_K: {132, 16, 0}, tile.Split: {words: 160}, tile.SplitLow: {192, 0, 16}}

// manyShared is the bytes of shared memory of a block of matmul.cu.
func manyShared(l tile.Layout, wide int) int {
	s, columns := manyStage[l], wide*columnsAcross
	ready := 2 * (tall*s.row + columns*s.column)
	return 4*(4*16*s.words+80*columns) + 2*ready + 4*tall*columns + 8*columns
}

// mostWide is how many columns a block of matmul.cu takes at most, in units of columnsAcross: of such blocks two share
// a multiprocessor, which was measured to be faster than larger ones.
const mostWide = 2

// wideOf is how many columns a block of matmul.cu takes, in units of columnsAcross; 0: mat-vec takes them.
func (k *Kernels) wideOf(m *kernel.MatVec) int {
	if m.W.Float || m.Columns <= kernel.FewColumns || m.Gain != 0 || m.W.Pair && m.Bias != 0 || m.Groups != 0 ||
		m.Tiles != 0 {
		return 0
	}
	wide := mostWide
	for ; wide > 0; wide /= 2 {
		if manyShared(tile.Of(m.W.Type), wide) <= k.c.Facts.Shared && (wide == 1 || m.Columns > columnsAcross/2*wide) &&
			(m.Experts == nil || columnsAcross*wide == m.Columns) {
			break
		}
	}
	return k.narrowed(m, wide)
}

// narrowed makes blocks take fewer columns where the card has more multiprocessors than there are blocks.
func (k *Kernels) narrowed(m *kernel.MatVec, wide int) int {
	for wide > 1 && m.Experts == nil &&
		int(parts(m.W.RowTiles(), tall/kernel.TileRows)*parts(m.Columns, columnsAcross*wide)) < k.c.Facts.Processors {
		wide /= 2
	}
	return wide
}

// matMul records a MatVec by matmul.cu.
func (k *Kernels) matMul(r *recording, m *kernel.MatVec, wide int) error {
	a := &matMulArgs{weights: m.W.Address, x: m.X, y: m.Y, bias: m.Bias, residual: m.Residual, count: m.Count,
		rows: uint32(m.W.Rows), yStride: uint32(m.YStride), columns: uint32(m.Columns), kTiles: uint32(m.W.KTiles()),
		segment: uint32(m.W.Segment), share: 1, epilogue: uint32(m.Glue), extras: uint32(m.Extras()),
		act: uint32(max(m.Act, ir.SiLU))}
	groups := parts(m.Columns, columnsAcross*wide)
	if e := m.Experts; e != nil {
		a.groups, a.chosen, a.share = 1, e.List, uint32(max(1, e.Share))
		groups = uint32(e.Entries)
	}
	grid := [3]uint32{parts(m.W.RowTiles(), tall/kernel.TileRows), groups, 1}
	name := fmt.Sprintf("matMul%d", wide)
	return launch(k, r, moduleOf("matmul", m.W.Type), name, grid, 128*wide, manyShared(tile.Of(m.W.Type), wide), a)
}

// Gathers implements kernel.Table.
func (k *Kernels) Gathers(w *kernel.Matrix, biased bool) int {
	v := kernel.MatVec{W: w, Columns: kernel.GroupedColumns, Experts: &kernel.Choice{Grouped: kernel.GroupedColumns}}
	if biased {
		v.Bias = 1
	}
	if k.wideOf(&v) == 0 {
		return kernel.MaxColumns
	}
	return kernel.GroupedColumns
}

// Rounded implements kernel.Table.
func (k *Kernels) Rounded(t quant.Type) bool { return t == quant.F16 || t == quant.BF16 }

// Apart implements kernel.Table: for models of floats alone, which have no fast products with the bits of mat-vec.
func (k *Kernels) Apart(p *ir.Bound) bool { return tile.Apart(p, k.Rounded, false) }

type halveArgs struct {
	x, y      uint64
	kTiles, _ uint32
}

// Wide: they are the arguments of a kernel.
type matMulHalfArgs struct {
	weights, x, y, bias, residual, count uint64

	rows, yStride, columns, kTiles, epilogue, extras, act, stagesAt uint32
}

// halfShared is the bytes of shared memory of a block of matmul_half.cu, and how many of them stages and sums share.
func halfShared(wide int) (all, stages int) {
	stages = max(3*(16<<10+wide*columnsAcross*144), 4*wide*columnsAcross*(tall+4))
	return stages + 12*wide*columnsAcross, stages
}

// halfWideOf is how many columns a block of matmul_half.cu takes, in units of columnsAcross; 0: it is not asked for, or
// cannot take them.
func (k *Kernels) halfWideOf(m *kernel.MatVec) int {
	if m.Halves == 0 || !k.Rounded(m.W.Type) || m.Gain != 0 || m.Experts != nil || m.W.Pair && m.Bias != 0 {
		return 0
	}
	wide := 4
	for ; wide > 0; wide /= 2 {
		all, _ := halfShared(wide)
		if all <= k.c.Facts.Shared && (wide == 1 || m.Columns > columnsAcross/2*wide) {
			break
		}
	}
	return k.narrowed(m, wide)
}

// matMulHalves records a MatVec by matmul_half.cu, or by what a card has that multiplies faster, after a kernel that
// rounds its activations.
func (k *Kernels) matMulHalves(r *recording, m *kernel.MatVec, wide int) error {
	kTiles, columns := uint32(m.W.KTiles()), uint32(m.Columns)
	err := launch(k, r, "halve", "halve", [3]uint32{columns, 1, 1}, 256, 0, &halveArgs{x: m.X, y: m.Halves, kTiles: kTiles})
	if err != nil {
		return err
	}
	r.Barrier()
	all, stages := halfShared(wide)
	a := &matMulHalfArgs{weights: m.W.Address, x: m.Halves, y: m.Y, bias: m.Bias, residual: m.Residual, count: m.Count,
		rows: uint32(m.W.Rows), yStride: uint32(m.YStride), columns: columns, kTiles: kTiles, epilogue: uint32(m.Glue),
		extras: uint32(m.Extras()), act: uint32(max(m.Act, ir.SiLU)), stagesAt: uint32(stages)}
	grid := [3]uint32{parts(m.W.RowTiles(), tall/kernel.TileRows), parts(m.Columns, columnsAcross*wide), 1}
	if k.grouped(m.W.Type) {
		n := k.groupColumns(m)
		grid[1] = parts(m.Columns, n)
		return launch(k, r, moduleOf("matmul_half_group", m.W.Type), fmt.Sprintf("matMul%d", n), grid, 256, groupShared(n), a)
	}
	return launch(k, r, moduleOf("matmul_half", m.W.Type), "matMulHalf", grid, 64*wide, all, a)
}

// grouped says whether the card multiplies weights of a type by matmul_half_group.cu: all products or none, as the bits
// of a column are those of one kernel.
func (k *Kernels) grouped(t quant.Type) bool {
	return t == quant.F16 && k.c.Facts.Major == 9 && k.c.Facts.Minor == 0
}

// groupShared is the bytes of shared memory of a block of matmul_half_group.cu.
func groupShared(columns int) int { return 4*(16<<10+128*columns) + 12*columns }

// groupColumns is how many columns a block of matmul_half_group.cu takes.
func (k *Kernels) groupColumns(m *kernel.MatVec) int {
	n, tiles := 256, m.W.RowTiles()
	for n > 64 && (m.Columns <= n/2 ||
		int(parts(tiles, tall/kernel.TileRows)*parts(m.Columns, n)) < k.c.Facts.Processors*3/4) {
		n /= 2
	}
	return n
}
