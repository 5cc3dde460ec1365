//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
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

// recoded is rows of a file as Pack takes them.
func recoded(t testing.TB, typ quant.Type, cols int, file []byte) []byte {
	row, err := typ.RowBytes(cols)
	require.NoError(t, err)
	n, err := UploadBytes(typ, cols)
	require.NoError(t, err)
	to := make([]byte, n*(len(file)/row))
	require.NoError(t, Recode(typ, cols, to, file))
	return to
}

func randomWeights(t testing.TB, typ quant.Type, rows, cols int, seed uint64) ([]byte, []float32) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	n, err := typ.RowBytes(cols)
	require.NoError(t, err)
	file := make([]byte, rows*n)
	require.NoError(t, quant.Random(typ, file, 1, rnd))
	values := make([]float32, rows*cols)
	require.NoError(t, quant.Dequantize(typ, values, file))
	return file, values
}

func randomRow(n int, seed uint64) []float32 {
	rnd := rand.New(rand.NewPCG(seed, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64()) * float32(math.Exp2(rnd.Float64()*4-2))
	}
	return x
}

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
	rounded := roundTrip(typ, x)
	for o := range rows {
		sum, size := 0.0, 0.0
		for i, v := range rounded {
			p := float64(values[o*cols+i]) * float64(v)
			sum, size = sum+p, size+math.Abs(p)
		}
		require.InDelta(g.t, sum, got[o], size*2e-7*float64(cols/32+1), "row %d", o)
	}
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

// fma32 is a·b + c rounded once: the exact product and its sum with c in 64 bits, rounded to odd, then to 32 bits.
func fma32(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	s := p + d
	t := s - p
	rest := (p - (s - t)) + (d - t)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}

// quantised is the twin of lib/quantise.glsl for 32 values: bytes, scale, and the sums of both halves.
func quantised(x []float32) (q [32]int32, d float32, sums [2]int32) {
	amax := float32(0)
	for _, v := range x {
		amax = max(amax, v, -v)
	}
	by := float32(0)
	if amax > 0 {
		by = 127 / amax
	}
	for i, v := range x {
		q[i] = int32(math.RoundToEven(float64(v * by)))
		sums[i/16] += q[i]
	}
	return q, amax * float32(1.0/127), sums
}

// roundTrip is activations as the kernel sees them.
func roundTrip(t quant.Type, x []float32) []float32 {
	if formats[t].float {
		return x
	}
	y := make([]float32, len(x))
	for b := 0; b < len(x); b += 32 {
		q, d, _ := quantised(x[b : b+32])
		for i := range 32 {
			y[b+i] = d * float32(q[i])
		}
	}
	return y
}

// twinMatVec is matvec.comp's result for one column, from the file's bytes.
func twinMatVec(m *kernel.Matrix, file []byte, x []float32, fma func(a, b, c float32) float32) []float32 {
	y := make([]float32, m.Rows)
	rowBytes := len(file) / m.Rows
	for o := range y {
		row := file[o*rowBytes : (o+1)*rowBytes]
		for from := 0; from < m.Cols; from += m.Segment * kernel.TileCols {
			to := min(from+m.Segment*kernel.TileCols, m.Cols)
			if m.Float {
				var s [4]float32
				w := make([]float32, m.Cols)
				if err := quant.Dequantize(m.Type, w, row); err != nil {
					panic(err)
				}
				for k := from; k < to; k++ {
					s[k%4] = fma(w[k], x[k], s[k%4])
				}
				y[o] += (s[0] + s[1]) + (s[2] + s[3])
				continue
			}
			acc := float32(0)
			for b := from / 32; b < to/32; b++ {
				q, d, sums := quantised(x[32*b : 32*b+32])
				acc = twinBlock(m.Type, row, b, q, d, sums, acc, fma)
			}
			y[o] += acc
		}
	}
	return y
}

// twinBlock adds block b of a row.
func twinBlock(t quant.Type, row []byte, b int, x [32]int32, d float32, sums [2]int32, acc float32,
	fma func(a, b, c float32) float32) float32 {
	half := func(at int) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(row[at:])) }
	dot := func(code func(i int) int32, from, to int) (s int32) {
		for i := from; i < to; i++ {
			s += code(i) * x[i]
		}
		return s
	}
	switch t {
	case quant.Q4_0:
		at := b * 18
		code := func(i int) int32 { return int32(row[at+2+i%16]>>(i/16*4)&15) - 8 }
		return fma(half(at)*d, float32(dot(code, 0, 32)), acc)
	case quant.Q8_0:
		at := b * 34
		return fma(half(at)*d, float32(dot(func(i int) int32 { return int32(int8(row[at+2+i])) }, 0, 32)), acc)
	case quant.Q4_K:
		at, s := b/8*144, b%8
		scale, low := row[at+4+s]&63, row[at+8+s%8]&63
		if s >= 4 {
			scale, low = row[at+8+s]&15|row[at+s]>>6<<4, row[at+8+s]>>4|row[at+4+s]>>6<<4
		}
		code := func(i int) int32 { return int32(row[at+16+s/2*32+i] >> (s % 2 * 4) & 15) }
		acc = fma(half(at)*float32(scale)*d, float32(dot(code, 0, 32)), acc)
		return fma(-(half(at+2) * float32(low)), d*float32(sums[0]+sums[1]), acc)
	case quant.Q6_K:
		at, run := b/8*210, b%8
		code := func(i int) int32 {
			lo := row[at+run/4*64+run%2*32+i] >> (run % 4 / 2 * 4) & 15
			hi := row[at+128+run/4*32+i] >> (run % 4 * 2) & 3
			return int32(lo|hi<<4) - 32
		}
		s0, s1 := int32(int8(row[at+192+2*run])), int32(int8(row[at+193+2*run]))
		return fma(half(at+208)*d, float32(s0*dot(code, 0, 16)+s1*dot(code, 16, 32)), acc)
	}
	return twinSplit(t, row, b, x, d, acc, fma)
}

// twinSplit adds block b of a row of any type.
func twinSplit(t quant.Type, row []byte, b int, x [32]int32, d float32, acc float32,
	fma func(a, b, c float32) float32) float32 {
	cols := len(row) / t.Bytes() * t.Block()
	codes, scales, lows := make([]int8, cols), make([]float32, cols/16), make([]float32, cols/16)
	if err := quant.Split(t, codes, scales, lows, row); err != nil {
		panic(err)
	}
	var sums [2]int32
	for h := range 2 {
		dot := int32(0)
		for i := range 16 {
			dot += int32(codes[32*b+16*h+i]) * x[16*h+i]
			sums[h] += x[16*h+i]
		}
		acc = fma(scales[2*b+h]*d, float32(dot), acc)
	}
	for h := range 2 {
		if t.Bounds().Low > 0 {
			acc = fma(-lows[2*b+h], d*float32(sums[h]), acc)
		}
	}
	return acc
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
