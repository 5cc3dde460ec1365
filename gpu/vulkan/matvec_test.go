//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile/tiletest"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/quant"
)

// matrixOf makes random weights: the file's bytes, the matrix on the device, packed there, and the values.
func (g *gpu) matrixOf(t quant.Type, rows, cols int, seed uint64) (kernel.Matrix, []byte, []float32) {
	g.t.Helper()
	file, values := randomWeights(g.t, t, rows, cols, seed)
	m, err := NewMatrix(t, rows, cols, false)
	require.NoError(g.t, err)
	m.Address = g.room(m.Bytes()).Address
	from := g.bytes(recoded(g.t, t, cols, file))
	g.run(func(r *vk.Recording) {
		require.NoError(g.t, g.k.Pack(r, &kernel.Pack{W: &m, File: from.Address, Rows: rows}))
	})
	return m, file, values
}

// What is compared with is the same for all drivers of cards.
var (
	recoded, randomWeights, randomRow = tiletest.Recoded, tiletest.RandomWeights, tiletest.RandomRow
	fma32, quantised, twinMatVec      = tiletest.FMA32, tiletest.Quantised, tiletest.MatVec
)

// types are those with kernels of their own, and two of the others.
var types = []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.F16, quant.BF16, quant.F32, quant.Q3_K,
	quant.Q5_K}

// allTypes are all that files can have.
func allTypes() (all []quant.Type) {
	for _, t := range quant.All() {
		if quant.HasCodec(t) {
			all = append(all, t)
		}
	}
	return all
}

// TestMatVecTwin compares with the order of addition of matvec.comp in plain Go, by bits, and with exact sums.
func TestMatVecTwin(t *testing.T) {
	g := open(t)
	for _, typ := range allTypes() {
		narrow := 352 / typ.Block() * typ.Block() // no whole tile, where blocks allow it
		for _, shape := range [][2]int{{32, max(256, narrow-typ.Block())}, {64, 1024}, {37, 768}, {32, 4096 + 256}} {
			for _, plain := range []bool{false, true} {
				if plain && (formats[typ].float || shape[0] == 64) || !plain && !g.d.Facts.Has.Dot4 ||
					!slices.Contains(types, typ) && (shape[0] != 37 || plain) {
					continue
				}
				t.Run(fmt.Sprint(typ, shape, plain), func(t *testing.T) {
					g := g.with(t)
					g.k.Plain = plain
					defer func() { g.k.Plain = !g.d.Facts.Has.Dot4 }()
					testMatVecTwin(g, typ, shape[0], shape[1])
				})
			}
		}
	}
}

func testMatVecTwin(g *gpu, typ quant.Type, rows, cols int) {
	m, file, values := g.matrixOf(typ, rows, cols, 1)
	x := randomRow(cols, 3)
	a := g.activations(typ, [][]float32{x})
	y := g.room(uint64(4 * rows))
	g.run(func(r *vk.Recording) {
		v := &kernel.MatVec{W: &m, Columns: 1, X: a.Address, XStride: kernel.PaddedWidth(cols), Y: y.Address}
		require.NoError(g.t, g.k.MatVec(r, v))
	})
	got := floats(y.Bytes)
	fused := twinMatVec(&m, file, x, fma32)
	apart := twinMatVec(&m, file, x, func(a, b, c float32) float32 { return a*b + c })
	if !g.sameBits(fused, got) && !g.sameBits(apart, got) {
		for i := range got {
			require.InDelta(g.t, fused[i], got[i], 1e-4*(1+math.Abs(float64(fused[i]))), "row %d", i)
		}
		g.t.Errorf("not the bits of the twin: %v and %v, got %v", fused[:4], apart[:4], got[:4])
	}
	tiletest.Near(g.t, got, values, tiletest.RoundTrip(typ, x), 2e-7*float64(cols/32+1))
}

// TestRowAlone compares a column alone with the same column among others, by bits.
func TestRowAlone(t *testing.T) {
	g := open(t)
	for i, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			g := g.with(t)
			const rows, cols = 96, 1280
			m, _, _ := g.matrixOf(typ, rows, cols, 5)
			var xs [][]float32
			for c := range uint64(8) {
				xs = append(xs, randomRow(cols, 7+c))
			}
			a, y := g.activations(typ, xs), g.room(4*8*rows)
			one := make([][]float32, 8)
			size := uint64(kernel.QuantisedBytes(cols))
			if formats[typ].float {
				size = 4 * uint64(kernel.PaddedWidth(cols))
			}
			for c := range one {
				g.run(func(r *vk.Recording) {
					v := &kernel.MatVec{W: &m, Columns: 1, X: a.Address + uint64(c)*size, XStride: kernel.PaddedWidth(cols),
						Y: y.Address}
					require.NoError(g.t, g.k.MatVec(r, v))
				})
				one[c] = floats(y.Bytes)[:rows]
			}
			for _, n := range []int{2, 4, 8} {
				for _, tiles := range []int{1, 2} {
					if g.d.Facts.Kind == vk.CPU && (formats[typ].float && n*tiles > 8 || i > 4 && n*tiles > 2) {
						continue // lavapipe compiles it for seconds, or a minute
					}
					clear(y.Bytes)
					g.run(func(r *vk.Recording) {
						require.NoError(g.t, g.k.MatVec(r, &kernel.MatVec{W: &m, Columns: n, X: a.Address,
							XStride: kernel.PaddedWidth(cols),
							Y:       y.Address, YStride: rows, Tiles: tiles, Groups: 2}))
					})
					all := floats(y.Bytes)
					for c := range n {
						require.True(t, g.sameBits(one[c], all[c*rows:(c+1)*rows]), "%d columns, %d tiles, column %d", n, tiles, c)
					}
				}
			}
		})
	}
}

// TestFewThreads compares workgroups of all sizes that a device may allow, by bits.
func TestFewThreads(t *testing.T) {
	g := open(t)
	limit, shared := g.d.Facts.Invocations, g.d.Facts.Shared
	defer func() { g.d.Facts.Invocations, g.d.Facts.Shared = limit, shared }()
	for _, typ := range []quant.Type{quant.Q6_K, quant.F16} {
		const rows, cols = 64, 1280
		m, _, _ := g.with(t).matrixOf(typ, rows, cols, 5)
		x := g.activations(typ, [][]float32{randomRow(cols, 6), randomRow(cols, 7)})
		var first []float32
		for _, c := range [][2]uint32{{limit, shared}, {32, shared}, {96, shared}, {128, shared}, {limit, 1100}} {
			g.d.Facts.Invocations, g.d.Facts.Shared = c[0], c[1]
			y := g.room(4 * 2 * rows)
			g.run(func(r *vk.Recording) {
				require.NoError(t, g.k.MatVec(r, &kernel.MatVec{W: &m, Columns: 2, X: x.Address, XStride: cols, Y: y.Address,
					YStride: rows}))
			})
			if first == nil {
				first = floats(y.Bytes)
			}
			require.True(t, g.sameBits(first, floats(y.Bytes)), "%s: %d threads, %d bytes", typ, c[0], c[1])
		}
	}
}

// activations puts rows on the device as a type's mat-vec takes them: quantised there, or padded.
func (g *gpu) activations(t quant.Type, xs [][]float32) *vk.Buffer {
	g.t.Helper()
	width := len(xs[0])
	padded := kernel.PaddedWidth(width)
	all := make([]float32, padded*len(xs))
	for i, x := range xs {
		copy(all[i*padded:], x)
	}
	from := g.floats(all)
	if formats[t].float {
		return from
	}
	to := g.room(uint64(kernel.QuantisedBytes(width) * len(xs)))
	g.run(func(r *vk.Recording) {
		require.NoError(g.t, g.k.Norm(r, &kernel.Norm{X: from.Address, Y: to.Address, Width: width, XStride: padded,
			Rows: len(xs), Quantise: true}))
	})
	return to
}

// TestEveryFormatHasKernels: what internal/quant decodes is multiplied here, too.
func TestEveryFormatHasKernels(t *testing.T) {
	for _, typ := range quant.All() {
		require.Equal(t, quant.HasCodec(typ), Supported(typ), "%s: allFormats, in gpu/vulkan/format.go", typ)
	}
}
