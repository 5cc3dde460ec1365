//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/quant"
)

// rms is a row's norm in float64.
func rms(x, gain []float32, eps float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+eps)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v) * scale * float64(gain[i])
	}
	return y
}

// padded is rows one after the other, each with zeros up to whole 256.
func padded(rows [][]float32) []float32 {
	n := kernel.PaddedWidth(len(rows[0]))
	all := make([]float32, n*len(rows))
	for i, x := range rows {
		copy(all[i*n:], x)
	}
	return all
}

func TestNorm(t *testing.T) {
	g := open(t)
	for _, width := range []int{256, 250, 64, 1024, 2880, 4100} {
		rows := [][]float32{randomRow(width, 1), randomRow(width, 2), make([]float32, width)}
		gain, n := randomRow(width, 3), kernel.PaddedWidth(width)
		from, weights := g.floats(padded(rows)), g.floats(gain)
		to, bytes := g.room(uint64(4*n*3)), g.room(uint64(kernel.QuantisedBytes(width)*3))
		for i := range to.Bytes {
			to.Bytes[i] = 0xff // what is not written is seen
		}
		norm := kernel.Norm{X: from.Address, Y: to.Address, Gain: weights.Address, Width: width, XStride: n, Stride: n,
			Rows: 3,
			Eps:  1e-5}
		quantise := norm
		quantise.Y, quantise.Quantise = bytes.Address, true
		g.run(func(r *vk.Recording) {
			require.NoError(t, g.k.Norm(r, &norm))
			require.NoError(t, g.k.Norm(r, &quantise))
		})
		y := floats(to.Bytes)
		for i, x := range rows {
			want := append(rms(x, gain, 1e-5), make([]float64, n-width)...)
			for j, v := range want {
				require.InDelta(t, v, y[i*n+j], 1e-6*(1+math.Abs(v)), "width %d, row %d, feature %d", width, i, j)
			}
			checkQuantised(t, y[i*n:(i+1)*n], bytes.Bytes[i*kernel.QuantisedBytes(width):][:kernel.QuantisedBytes(width)])
		}
	}
}

// checkQuantised compares a row's bytes, scales and sums with the twin's, of the same float32 values.
func checkQuantised(t *testing.T, x []float32, got []byte) {
	t.Helper()
	for b := range len(x) / 32 {
		q, d, sums := quantised(x[32*b : 32*b+32])
		scale := view[uint32](got[len(x)+8*b:])
		require.InDelta(t, d, math.Float32frombits(scale[0]), float64(d)*1e-7)
		exact := [2]int32{}
		for i, v := range q {
			code := int32(int8(got[32*b+i]))
			require.InDelta(t, v, code, 1, "block %d, value %d", b, i) // a quotient may be rounded otherwise
			exact[i/16] += code
		}
		require.Equal(t, exact, [2]int32{int32(int16(scale[1])), int32(scale[1]) >> 16}, "block %d, sums near %v", b, sums)
	}
}

// TestProjectTwoWays compares the norm within mat-vec with a norm before it, by bits, and bias, residual and the number
// of columns that are there with what they should do.
func TestProjectTwoWays(t *testing.T) {
	g := open(t)
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q6_K, quant.F16} {
		const rows, width, columns = 70, 768, 3
		m, _, _ := g.with(t).matrixOf(typ, rows, width, 5)
		xs := [][]float32{randomRow(width, 1), randomRow(width, 2), randomRow(width, 3)}
		bias, residual := randomRow(rows, 4), randomRow(rows*columns, 5)
		v := kernel.MatVec{W: &m, Columns: columns, X: g.floats(padded(xs)).Address, XStride: width,
			Gain: g.floats(randomRow(width, 6)).Address, Eps: 1e-5, YStride: rows}
		scratch := g.room(uint64(4 * width * columns))
		ys := make([][]float32, 4)
		for i := range ys {
			y := g.room(4 * rows * columns)
			copy(view[float32](y.Bytes), residual)
			w := v
			w.Y = y.Address
			if i >= 2 {
				w.Bias, w.Residual = g.floats(bias).Address, y.Address
			}
			if i == 3 {
				w.Count = g.words(2).Address
			}
			g.run(func(r *vk.Recording) {
				if i == 1 {
					require.NoError(t, g.k.Norm(r, &kernel.Norm{X: w.X, Y: scratch.Address, Gain: w.Gain, Width: width,
						XStride: width, Stride: width, Rows: columns, Eps: w.Eps, Quantise: typ != quant.F16}))
					r.Barrier()
					w.X, w.Gain = scratch.Address, 0
				}
				require.NoError(t, g.k.MatVec(r, &w))
			})
			ys[i] = floats(y.Bytes)
		}
		require.True(t, g.sameBits(ys[0], ys[1]), "%s: a norm within and one before", typ)
		for i, v := range ys[0] {
			require.Equal(t, v+bias[i%rows]+residual[i], ys[2][i], "%s: output %d", typ, i)
		}
		require.True(t, g.sameBits(ys[2][:2*rows], ys[3][:2*rows]))
		require.True(t, g.sameBits(residual[2*rows:], ys[3][2*rows:]), "%s: the third column is not there", typ)
	}
}

// TestPair compares gate and up in one matrix with each on its own.
func TestPair(t *testing.T) {
	g := open(t)
	for _, typ := range []quant.Type{quant.Q4_K, quant.Q8_0, quant.F16} {
		const rows, width, columns = 300, 512, 2
		gate, up := newFile(t, typ, rows, width, 1), newFile(t, typ, rows, width, 2)
		m, err := NewMatrix(typ, rows, width, true)
		require.NoError(t, err)
		m.Address = g.room(m.Bytes()).Address
		one, two := g.alone(typ, rows, width, gate), g.alone(typ, rows, width, up)
		x := g.activations(typ, [][]float32{randomRow(width, 3), randomRow(width, 4)})
		a, b := g.room(4*rows*columns), g.room(4*rows*columns)
		n := kernel.PaddedWidth(rows)
		h, bytes := g.room(uint64(4*n*columns)), g.room(uint64(kernel.QuantisedBytes(rows)*columns))
		g.run(func(r *vk.Recording) {
			require.NoError(t, g.k.Pack(r, &kernel.Pack{W: &m, File: g.bytes(gate).Address, Rows: rows}))
			require.NoError(t, g.k.Pack(r, &kernel.Pack{W: &m, File: g.bytes(up).Address, Rows: rows, Up: true}))
			r.Barrier()
			v := kernel.MatVec{Columns: columns, X: x.Address, XStride: width, YStride: rows}
			for _, c := range []struct {
				m *kernel.Matrix
				y *vk.Buffer
			}{{&one, a}, {&two, b}} {
				w := v
				w.W, w.Y = c.m, c.y.Address
				require.NoError(t, g.k.MatVec(r, &w))
			}
			w := v
			w.W, w.Y, w.YStride, w.Glue = &m, h.Address, n, kernel.SwiGLU
			require.NoError(t, g.k.MatVec(r, &w))
			w.Y, w.Glue = bytes.Address, kernel.SwiGLUToInt8
			require.NoError(t, g.k.MatVec(r, &w))
		})
		ga, ua, ha := floats(a.Bytes), floats(b.Bytes), floats(h.Bytes)
		for c := range columns {
			for i := range n {
				want := 0.0
				if i < rows {
					v := float64(ga[c*rows+i])
					want = v / (1 + math.Exp(-v)) * float64(ua[c*rows+i])
				}
				require.InDelta(t, want, ha[c*n+i], 1e-5*(1+math.Abs(want)), "%s: column %d, output %d", typ, c, i)
			}
			checkQuantised(t, ha[c*n:(c+1)*n], bytes.Bytes[c*kernel.QuantisedBytes(rows):][:kernel.QuantisedBytes(rows)])
		}
	}
}

func newFile(t *testing.T, typ quant.Type, rows, cols int, seed uint64) []byte {
	file, _ := randomWeights(t, typ, rows, cols, seed)
	return file
}

// alone packs a file's rows as a matrix, in two pieces.
func (g *gpu) alone(typ quant.Type, rows, cols int, file []byte) kernel.Matrix {
	m, err := NewMatrix(typ, rows, cols, false)
	require.NoError(g.t, err)
	m.Address = g.room(m.Bytes()).Address
	n := len(file) / rows
	g.run(func(r *vk.Recording) {
		require.NoError(g.t, g.k.Pack(r, &kernel.Pack{W: &m, File: g.bytes(file[:64*n]).Address, Rows: 64}))
		require.NoError(g.t, g.k.Pack(r, &kernel.Pack{W: &m, File: g.bytes(file[64*n:]).Address, First: 64, Rows: rows - 64}))
		require.Error(g.t, g.k.Pack(r, &kernel.Pack{W: &m, File: 1, First: 3, Rows: 64}), "a piece begins at a tile")
	})
	return m
}

// TestEmbed compares rows with the reference decoder: exactly, but for the two products of K-quants' scales.
func TestEmbed(t *testing.T) {
	g := open(t)
	for _, typ := range allTypes() {
		const rows, cols = 100, 512
		m, _, values := g.with(t).matrixOf(typ, rows, cols, 8)
		ids := []uint32{99, 0, 31, 32, 1<<32 - 3}
		drawn := g.words(7, 8, 31)
		y := g.room(uint64(4 * cols * len(ids)))
		g.run(func(r *vk.Recording) {
			require.NoError(t, g.k.Embed(r, &kernel.Embed{W: &m, IDs: g.words(ids...).Address, Drawn: drawn.Address,
				Y:       y.Address,
				YStride: cols, Rows: len(ids)}))
		})
		got := floats(y.Bytes)
		for i, id := range []int{99, 0, 31, 32, 31} {
			for j, v := range values[id*cols : (id+1)*cols] {
				require.InDelta(t, v, got[i*cols+j], 3e-7*(1+math.Abs(float64(v))), "%s: row %d, value %d", typ, id, j)
			}
		}
	}
}

func TestArgMax(t *testing.T) {
	g := open(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, width := range []int{1, 5, 64, 1000, 50000} {
		rows := [][]float32{randomRow(width, 1), make([]float32, width), randomRow(width, 2), randomRow(width, 3)}
		rows[2][width/2], rows[2][width-1] = inf, inf
		rows[3][0] = nan
		var all []float32
		for _, x := range rows {
			all = append(all, x...)
		}
		ids, again := g.words(9, 9, 9, 9), g.words(9, 9, 9, 9)
		g.run(func(r *vk.Recording) {
			x, scratch := g.floats(all).Address, g.room(kernel.ArgMaxScratch(4)).Address
			require.NoError(t, g.k.ArgMax(r, &kernel.ArgMax{X: x, IDs: ids.Address, Second: again.Address, Scratch: scratch,
				Width: width, Stride: width, Rows: 4}))
		})
		require.Equal(t, ids.Bytes, again.Bytes)
		for i, x := range rows {
			best := 0
			for j, v := range x {
				if v > x[best] || x[best] != x[best] {
					best = j
				}
			}
			require.Equal(t, uint32(best), view[uint32](ids.Bytes)[i], fmt.Sprint("width ", width, ", row ", i))
		}
	}
}

func TestMatVecFaults(t *testing.T) {
	g := open(t)
	m, _, _ := g.with(t).matrixOf(quant.Q8_0, 32, 256, 1)
	pair := m
	pair.Pair = true
	wide := kernel.Matrix{Type: quant.Q8_0, Rows: 32, Cols: 1 << 16, Segment: 16}
	for _, c := range []struct {
		want string
		v    kernel.MatVec
	}{
		{"Q8_0 32×256: no columns", kernel.MatVec{W: &m}},
		{"experts take 2 columns, want 1", kernel.MatVec{W: &m, Columns: 2, Experts: &kernel.Choice{}}},
		{"needs a glue", kernel.MatVec{W: &pair, Columns: 1}},
		{"needs a glue", kernel.MatVec{W: &m, Columns: 1, Glue: kernel.SwiGLU}},
		{"rows of 7 values do not begin", kernel.MatVec{W: &m, Columns: 1, XStride: 7}},
		{"bytes of shared memory are needed", kernel.MatVec{W: &wide, Columns: 1, Gain: 1}},
	} {
		require.ErrorContains(t, g.k.MatVec(nil, &c.v), c.want)
	}
	_, err := NewMatrix(quant.I32, 32, 256, false)
	require.ErrorContains(t, err, "I32 has no kernels on Vulkan")
	_, err = NewMatrix(quant.Q4_K, 32, 100, false)
	require.Error(t, err)
}
