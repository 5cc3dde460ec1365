//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile/tiletest"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// mulPaths are the ways that a device has to multiply many columns.
func (g *gpu) mulPaths() map[string]func() {
	paths := map[string]func(){"plain": func() { g.k.Plain, g.k.CoopMat = true, false }}
	if g.d.Facts.Has.Dot4 {
		paths["dot"] = func() { g.k.Plain, g.k.CoopMat = false, false }
	}
	if hasMatrix(&g.d.Facts) {
		paths["matrix"] = func() { g.k.Plain, g.k.CoopMat = false, true }
	}
	return paths
}

// TestMatMul compares many columns with groups of a few, by bits, with all that may follow a product. With -short, one
// type of blocks and one of floats: a processor compiles the other types' kernels for minutes.
func TestMatMul(t *testing.T) {
	g := open(t)
	defer func() { g.k.Plain, g.k.CoopMat = !g.d.Facts.Has.Dot4, hasMatrix(&g.d.Facts) }()
	types := []quant.Type{quant.Q4_K, quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q8_0, quant.Q6_K, quant.Q3_K,
		quant.Q5_K}
	if testing.Short() {
		types = types[:2]
	}
	for _, typ := range types {
		for _, c := range []struct {
			rows, cols, columns int
			glue                kernel.Glue
		}{{300, 768, 17, kernel.Store}, {130, 256, 70, kernel.Store}, {70, 512, 40, kernel.SwiGLU}, {300, 256, 33,
			kernel.SwiGLUToInt8}} {
			if g.d.Facts.Kind == vk.CPU && c.columns != 17 && typ != quant.Q4_K && typ != quant.F16 {
				continue // compiling takes seconds
			}
			if formats[typ].float {
				c.glue = min(c.glue, kernel.SwiGLU)
			}
			t.Run(fmt.Sprint(typ, c), func(t *testing.T) { testMatMul(g.with(t), typ, c.rows, c.cols, c.columns, c.glue) })
		}
	}
}

func testMatMul(g *gpu, typ quant.Type, rows, cols, columns int, glue kernel.Glue) {
	m, err := NewMatrix(typ, rows, cols, glue != kernel.Store)
	require.NoError(g.t, err)
	m.Address = g.room(m.Bytes()).Address
	if cols == 768 {
		m.Segment = 2
	}
	for i := range 2 {
		if file, _ := randomWeights(g.t, typ, rows, cols, uint64(i)); i == 0 || m.Pair {
			from := g.bytes(recoded(g.t, typ, cols, file))
			g.run(func(r *vk.Recording) {
				require.NoError(g.t, g.k.Pack(r, &kernel.Pack{W: &m, File: from.Address, Rows: rows, Up: i == 1}))
			})
		}
	}
	var xs [][]float32
	for c := range columns {
		xs = append(xs, randomRow(cols, uint64(c)))
	}
	stride := kernel.PaddedWidth(rows)
	v := kernel.MatVec{W: &m, Columns: columns, X: g.activations(typ, xs).Address, XStride: kernel.PaddedWidth(cols),
		YStride: stride,
		Glue:    glue, Count: g.words(uint32(columns - 1)).Address}
	if glue == kernel.Store {
		v.Bias = g.floats(randomRow(rows, 90)).Address
		v.Residual = g.floats(randomRow(stride*columns, 91)).Address
	}
	run := func(v kernel.MatVec) []float32 {
		y := g.room(uint64(4 * stride * columns))
		v.Y = y.Address
		g.run(func(r *vk.Recording) { require.NoError(g.t, g.k.MatVec(r, &v)) })
		return floats(y.Bytes)
	}
	few := v
	few.Groups = 1 << 20 // not by matmul.comp
	g.mulPaths()["plain"]()
	want := run(few)
	for name, choose := range g.mulPaths() {
		_, float := g.k.floatMul(&v)
		if name == "plain" && g.d.Facts.Kind == vk.CPU && typ != quant.Q8_0 && !float {
			continue
		}
		choose()
		_, wide := g.k.mulOf(&v)
		require.True(g.t, wide > 0 || float)
		require.True(g.t, g.sameBits(want, run(v)), "by %s, %d wide", name, wide)
	}
}

// TestMatMulHalves compares with sums in float64 of what is rounded to half precision, and columns alone with all.
func TestMatMulHalves(t *testing.T) {
	g := open(t)
	defer func() { g.k.CoopMat = hasMatrix(&g.d.Facts) }()
	g.k.emulate = true
	for _, typ := range []quant.Type{quant.F16, quant.BF16} {
		for name, choose := range g.mulPaths() {
			if name == "plain" && g.d.Facts.Has.Dot4 {
				continue // the same kernel
			}
			for _, c := range []struct {
				rows, cols, columns int
				glue                kernel.Glue
			}{{140, 256, 37, kernel.Store}, {70, 101, 3, kernel.SwiGLU}} {
				if g.d.Facts.Kind == vk.CPU && typ == quant.BF16 && c.glue == kernel.Store {
					continue // compiling takes seconds
				}
				t.Run(fmt.Sprint(typ, name, c), func(t *testing.T) {
					choose()
					testMatMulHalves(g.with(t), typ, c.rows, c.cols, c.columns, c.glue)
				})
			}
		}
	}
}

// TestMatMulRounded compares blocks that are multiplied in half precision with what they are exactly, and columns alone
// with all by bits.
func TestMatMulRounded(t *testing.T) {
	g := open(t)
	g.k.emulate = true
	for _, typ := range []quant.Type{quant.Q4_K, quant.Q6_K, quant.Q3_K, quant.Q5_K} {
		t.Run(typ.String(), func(t *testing.T) {
			g := g.with(t)
			const rows, cols, columns = 140, 256, 70
			m, _, values := g.matrixOf(typ, rows, cols, 1)
			var xs [][]float32
			for c := range uint64(columns) {
				xs = append(xs, randomRow(cols, c))
			}
			for k := range xs[1] { // what halves do not reach
				xs[1][k] *= 3e7
			}
			y, exact, one := g.room(4*rows*columns), g.room(4*rows*columns), g.room(4*rows)
			v := kernel.MatVec{W: &m, Columns: columns, X: g.activations(typ, xs).Address, Y: exact.Address, YStride: rows}
			fast := v
			fast.Halves, fast.Y = g.room(uint64(columns*kernel.HalfBytes(cols))).Address, y.Address
			_, wide := g.k.halfMul(&fast)
			require.Positive(t, wide)
			alone := fast
			alone.Columns, alone.Y, alone.X = 1, one.Address, v.X+uint64((columns-1)*kernel.QuantisedBytes(cols))
			g.run(func(r *vk.Recording) {
				for _, v := range []*kernel.MatVec{&v, &fast, &alone} {
					r.Barrier()
					require.NoError(t, g.k.MatVec(r, v))
				}
			})
			got, want := floats(y.Bytes), floats(exact.Bytes)
			require.True(t, g.sameBits(got[(columns-1)*rows:], floats(one.Bytes)), "the last column alone")
			require.False(t, g.sameBits(got, want))
			for i, x := range got {
				size := 0.0
				for k, w := range values[i%rows*cols:][:cols] {
					size += math.Abs(float64(w) * float64(xs[i/rows][k]))
				}
				require.InDelta(t, want[i], x, size/1024, "column %d, output %d", i/rows, i%rows)
			}
		})
	}
}

func testMatMulHalves(g *gpu, typ quant.Type, rows, cols, columns int, glue kernel.Glue) {
	m, err := NewMatrix(typ, rows, cols, glue != kernel.Store)
	require.NoError(g.t, err)
	m.Address = g.room(m.Bytes()).Address
	var values [2][]float32
	for i := range values {
		var file []byte
		if file, values[i] = randomWeights(g.t, typ, rows, cols, uint64(i)); i == 0 || m.Pair {
			g.run(func(r *vk.Recording) {
				require.NoError(g.t, g.k.Pack(r, &kernel.Pack{W: &m, File: g.bytes(file).Address, Rows: rows, Up: i == 1}))
			})
		}
	}
	var xs [][]float32
	for c := range columns {
		xs = append(xs, randomRow(cols, uint64(c)))
	}
	for k := range xs[1] { // what halves do not reach, of both kinds
		xs[0][k] *= 1e-3
		xs[1][k] *= 3e7
	}
	xs[2][cols-1] *= 3e7
	bias, residual := randomRow(rows, 90), randomRow(rows*columns, 91)
	v := kernel.MatVec{W: &m, Columns: columns, X: g.activations(typ, xs).Address, XStride: kernel.PaddedWidth(cols),
		YStride: rows,
		Glue:    glue, Act: ir.GELU, Halves: g.room(uint64(columns * kernel.HalfBytes(cols))).Address}
	if glue == kernel.Store {
		v.Bias, v.Residual = g.floats(bias).Address, g.floats(residual).Address
	}
	y, one := g.room(uint64(4*rows*columns)), g.room(uint64(4*rows))
	v.Y = y.Address
	_, wide := g.k.halfMul(&v)
	require.Positive(g.t, wide)
	alone := v
	alone.Columns, alone.Y, alone.X = 1, one.Address, v.X+uint64(4*(columns-1)*kernel.PaddedWidth(cols))
	if v.Residual != 0 {
		alone.Residual += uint64(4 * (columns - 1) * rows)
	}
	g.run(func(r *vk.Recording) {
		require.NoError(g.t, g.k.MatVec(r, &v))
		r.Barrier()
		require.NoError(g.t, g.k.MatVec(r, &alone))
	})
	got := floats(y.Bytes)
	require.True(g.t, g.sameBits(got[(columns-1)*rows:], floats(one.Bytes)), "the last column alone")
	for i, x := range got {
		c, o := i/rows, i%rows
		sum, size := tiletest.HalfDot(values[0][o*cols:][:cols], xs[c])
		want := sum + float64(bias[o]) + float64(residual[i])
		if glue != kernel.Store {
			up, upSize := tiletest.HalfDot(values[1][o*cols:][:cols], xs[c])
			want, size = gatedTwin(ir.GELU, sum, up), size*(1+upSize)
		}
		require.InDelta(g.t, want, x, 1e-5*(1+size), "column %d, output %d", c, o)
	}
}
