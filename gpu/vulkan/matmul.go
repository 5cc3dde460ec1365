//go:build cgo && linux

package vulkan

import (
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// mul is the mat-mat kernels of a format, with integer dot products, without, and by cooperative matrices, and what
// decides their shared memory. Their bits are those of its mat-vec.
type mul struct {
	dot, plain, matrix shaders.Module
	left               int // 16-byte words of a row of weights that are in shared memory at a time
	scales, sums       int // numbers for each block of weights (scales), and of activations (sums)
}

// muls are the formats with mat-mat kernels in integers, by their mat-vec module. Types without a layout of their own
// have Split's.
var muls = map[shaders.Module]mul{
	shaders.MatvecQ4_0:     {shaders.MatmulQ4_0, shaders.MatmulQ4_0Plain, shaders.MatmulQ4_0Matrix, 5, 1, 1},
	shaders.MatvecQ8_0:     {shaders.MatmulQ8_0, shaders.MatmulQ8_0Plain, shaders.MatmulQ8_0Matrix, 5, 1, 1},
	shaders.MatvecQ4_K:     {shaders.MatmulQ4_K, shaders.MatmulQ4_KPlain, shaders.MatmulQ4_KMatrix, 5, 2, 2},
	shaders.MatvecQ6_K:     {shaders.MatmulQ6_K, shaders.MatmulQ6_KPlain, shaders.MatmulQ6_KMatrix, 7, 3, 1},
	shaders.MatvecSplit:    {shaders.MatmulSplit, shaders.MatmulSplitPlain, shaders.MatmulSplitMatrix, 7, 2, 1},
	shaders.MatvecSplitLow: {shaders.MatmulSplitLow, shaders.MatmulSplitLowPlain, shaders.MatmulSplitLowMatrix, 7, 4, 3},
}

// hasMatrix says whether subgroups have the cooperative matrices of integers that matmul.comp uses.
func hasMatrix(f *vk.Facts) bool { return multiplies(f, 32, vk.Int8, vk.Int32) }

// hasHalves says whether subgroups have those of half precision that matmul_f16.comp uses.
func hasHalves(f *vk.Facts) bool { return f.Has.Float16 && multiplies(f, 16, vk.Float16, vk.Float32) }

// multiplies says whether subgroups of 32 lanes multiply cooperative matrices of 16 × k and k × 16.
func multiplies(f *vk.Facts, k uint32, from, to vk.Number) bool {
	return f.Has.Matrix && f.Has.MemoryModel && f.Subgroup.Min == 32 && f.Subgroup.Max == 32 &&
		slices.ContainsFunc(f.Matrices, func(s vk.MatrixShape) bool {
			return s.M == 16 && s.N == 16 && s.K == k && s.A == from && s.B == from && s.C == to && s.D == to
		})
}

// shared is the bytes of shared memory of a workgroup that takes 32·wide columns.
func (f *mul) shared(wide int, glue kernel.Glue) uint32 {
	const tall, right = 128, 5
	columns, out := 32*wide, 256
	if glue == kernel.SwiGLUToInt8 {
		out = 512
	}
	stage := 16*tall*f.left + 16*columns*right + 8*tall*f.scales + 8*columns*f.sums
	return uint32(stage + 4*(2*wide*out+columns))
}

// mulOf finds the mat-mat kernels for a MatVec, and how many of its columns (rows of the step) a workgroup computes, in
// units of 32; 0: the mat-vec kernels compute it.
func (k *Kernels) mulOf(m *kernel.MatVec) (f mul, wide int) {
	f, ok := muls[formats[m.W.Type].dot]
	if !ok || m.Columns <= kernel.FewColumns || m.Gain != 0 || m.W.Pair && m.Bias != 0 ||
		m.Groups != 0 || m.Tiles != 0 {
		return f, 0
	}
	for wide = 4; wide > 0; wide /= 2 {
		if f.shared(wide, m.Glue) <= k.d.Facts.Shared && uint32(64*wide) <= k.d.Facts.Invocations &&
			(wide == 1 || m.Columns > 16*wide) && (m.Experts == nil || 32*wide == m.Columns) {
			break
		}
	}
	for wide > 2 && m.Experts == nil && (m.W.RowTiles()+3)/4*((m.Columns+32*wide-1)/(32*wide)) < manyWorkgroups {
		wide /= 2
	}
	return f, wide
}

// manyWorkgroups is how many workgroups keep nearly all of a card busy: where there are fewer, they are made smaller.
const manyWorkgroups = 100

// matMul records a MatVec by matmul.comp.
func (k *Kernels) matMul(r *vk.Recording, m *kernel.MatVec, f mul, wide int) error {
	c := shaders.MatmulConstants{Threads: uint32(64 * wide), Wide: uint32(wide),
		Epilogue: uint32(m.Glue), Extras: uint32(m.Extras()), Act: uint32(max(m.Act, ir.SiLU)),
		Layout: k.layout}
	module := f.dot
	switch {
	case k.CoopMat:
		module = f.matrix
	case k.Plain:
		module = f.plain
	}
	p := shaders.MatmulPush{Weights: m.W.Address, X: m.X, Y: m.Y, Bias: m.Bias, Residual: m.Residual,
		Count: m.Count, Rows: uint32(m.W.Rows), YStride: uint32(m.YStride), Columns: uint32(m.Columns),
		KTiles: uint32(m.W.KTiles()), Segment: uint32(m.W.Segment)}
	groups := (m.Columns + 32*wide - 1) / (32 * wide)
	if e := m.Experts; e != nil {
		c.Groups, groups = 1, e.Entries
		p.Chosen, p.Share = e.List, uint32(e.Share)
	}
	shader, err := k.kernel(module, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &p)
	r.Dispatch(uint32((m.W.RowTiles()+3)/4), uint32(groups), 1)
	return nil
}

// half is the mat-mat kernels of a format that round to half precision: by cooperative matrices, and, for tests,
// without. Q4_0 and Q8_0 have none: products in integers are as fast.
type half struct{ matrix, emulated shaders.Module }

var halves = map[shaders.Module]half{
	shaders.MatvecF16:      {shaders.MatmulF16Matrix, shaders.MatmulF16},
	shaders.MatvecBf16:     {shaders.MatmulBf16Matrix, shaders.MatmulBf16},
	shaders.MatvecQ4_K:     {shaders.MatmulHalfQ4_KMatrix, shaders.MatmulHalfQ4_K},
	shaders.MatvecQ6_K:     {shaders.MatmulHalfQ6_KMatrix, shaders.MatmulHalfQ6_K},
	shaders.MatvecSplit:    {shaders.MatmulHalfSplitMatrix, shaders.MatmulHalfSplit},
	shaders.MatvecSplitLow: {shaders.MatmulHalfSplitLowMatrix, shaders.MatmulHalfSplitLow},
}

// Rounded implements kernel.Table.
func (k *Kernels) Rounded(t quant.Type) bool {
	_, ok := halves[formats[t].dot]
	return ok
}

// rounds says whether the device can use the kernels that round to half precision.
func (k *Kernels) rounds() bool { return k.CoopMat && k.squares || k.emulate }

// Apart implements kernel.Table.
func (k *Kernels) Apart(p *ir.Bound) bool {
	return k.rounds() && tile.Apart(p, k.Rounded, k.Halves)
}

// halfMul is the mat-mat kernel that rounds weights and activations to half precision, and how many columns a workgroup
// takes, in units of 64; 0: it is not asked for, or there is none.
func (k *Kernels) halfMul(m *kernel.MatVec) (module shaders.Module, wide int) {
	f, ok := halves[formats[m.W.Type].dot]
	if !ok || m.Halves == 0 || !k.rounds() || m.Gain != 0 || m.Experts != nil || m.W.Pair && m.Bias != 0 {
		return module, 0
	}
	module = f.emulated
	if k.CoopMat && k.squares {
		module = f.matrix
	}
	const stride = 18 * 2
	words := 256
	if m.Glue == kernel.SwiGLUToInt8 {
		words = 512
	}
	for wide = 2; wide > 0; wide /= 2 {
		shared := uint32(4 * (128*stride + 64*wide*stride + 64*wide + 2*wide*words))
		if shared <= k.d.Facts.Shared && uint32(64*wide) <= k.d.Facts.Invocations && (wide == 1 || m.Columns > 64) {
			break
		}
	}
	return module, wide
}

// matMulHalves records a MatVec by matmul_f16.comp, after a kernel that rounds its activations.
func (k *Kernels) matMulHalves(r *vk.Recording, m *kernel.MatVec, module shaders.Module, wide int) error {
	rounding := shaders.Halve
	if m.W.Float {
		rounding = shaders.HalveFloat
	}
	halve, err := k.kernel(rounding, nil)
	if err != nil {
		return err
	}
	vk.Use(r, halve, &shaders.HalvePush{X: m.X, Y: m.Halves, KTiles: uint32(m.W.KTiles())})
	r.Dispatch(uint32(m.Columns), 1, 1)
	r.Barrier()
	c := shaders.MatmulF16Constants{Threads: uint32(64 * wide), Wide: uint32(wide),
		Epilogue: uint32(m.Glue), Extras: uint32(m.Extras()), Act: uint32(max(m.Act, ir.SiLU))}
	shader, err := k.kernel(module, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.MatmulF16Push{Weights: m.W.Address, X: m.Halves, Y: m.Y, Bias: m.Bias, Residual: m.Residual,
		Count: m.Count, Rows: uint32(m.W.Rows), YStride: uint32(m.YStride), Columns: uint32(m.Columns),
		KTiles: uint32(m.W.KTiles())})
	r.Dispatch(uint32((m.W.RowTiles()+3)/4), uint32((m.Columns+64*wide-1)/(64*wide)), 1)
	return nil
}

// floatMul is the mat-mat kernel for float types that has the bits of mat-vec.
func (k *Kernels) floatMul(m *kernel.MatVec) (shaders.Module, bool) {
	module, ok := map[quant.Type]shaders.Module{quant.F16: shaders.MatmulFloatF16, quant.BF16: shaders.MatmulFloatBf16,
		quant.F32: shaders.MatmulFloatF32}[m.W.Type]
	return module, ok && m.Columns > kernel.FewColumns && m.Gain == 0 && m.Experts == nil && (!m.W.Pair || m.Bias == 0) &&
		m.Groups == 0 && m.Tiles == 0 && k.d.Facts.Invocations >= 256 && k.d.Facts.Shared >= 25<<10
}

// matMulFloat records a MatVec by matmul_float.comp.
func (k *Kernels) matMulFloat(r *vk.Recording, m *kernel.MatVec, module shaders.Module) error {
	const tall, wide = 128, 64
	c := shaders.MatmulFloatConstants{Epilogue: uint32(m.Glue), Extras: uint32(m.Extras()),
		Act: uint32(max(m.Act, ir.SiLU))}
	shader, err := k.kernel(module, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, shader, &shaders.MatmulFloatPush{Weights: m.W.Address, X: m.X, Y: m.Y, Bias: m.Bias, Residual: m.Residual,
		Count: m.Count, Rows: uint32(m.W.Rows), YStride: uint32(m.YStride), Columns: uint32(m.Columns),
		KTiles: uint32(m.W.KTiles()), Segment: uint32(m.W.Segment)})
	r.Dispatch(uint32((m.W.RowTiles()+tall/kernel.TileRows-1)/(tall/kernel.TileRows)), uint32((m.Columns+wide-1)/wide), 1)
	return nil
}
