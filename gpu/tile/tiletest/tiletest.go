// Package tiletest is shared by tests of drivers with package tile's layouts: random weights and activations, and their
// products in plain Go, with the kernels' order of addition.
package tiletest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Recoded converts rows of a file to the form that Pack takes.
func Recoded(t testing.TB, typ quant.Type, cols int, file []byte) []byte {
	row, err := typ.RowBytes(cols)
	require.NoError(t, err)
	n, err := tile.UploadBytes(typ, cols)
	require.NoError(t, err)
	to := make([]byte, n*(len(file)/row))
	require.NoError(t, tile.Recode(typ, cols, to, file))
	return to
}

func RandomWeights(t testing.TB, typ quant.Type, rows, cols int, seed uint64) ([]byte, []float32) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	n, err := typ.RowBytes(cols)
	require.NoError(t, err)
	file := make([]byte, rows*n)
	require.NoError(t, quant.Random(typ, file, 1, rnd))
	values := make([]float32, rows*cols)
	require.NoError(t, quant.Dequantize(typ, values, file))
	return file, values
}

func RandomRow(n int, seed uint64) []float32 {
	rnd := rand.New(rand.NewPCG(seed, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64()) * float32(math.Exp2(rnd.Float64()*4-2))
	}
	return x
}

// FMA32 is a·b + c rounded once: the exact product and its sum with c in 64 bits, rounded to odd, then to 32 bits.
func FMA32(a, b, c float32) float32 {
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

// Quantised is the twin of lib/quantise.glsl for 32 values: bytes, scale, and the sums of both halves.
func Quantised(x []float32) (q [32]int32, d float32, sums [2]int32) {
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

// RoundTrip is activations after quantisation, as kernels multiply them; for float types they stay as they are.
func RoundTrip(t quant.Type, x []float32) []float32 {
	if tile.Of(t).Float() {
		return x
	}
	y := make([]float32, len(x))
	for b := 0; b < len(x); b += 32 {
		q, d, _ := Quantised(x[b : b+32])
		for i := range 32 {
			y[b+i] = d * float32(q[i])
		}
	}
	return y
}

// MatVec is the result of matvec.comp for one column, from the file's bytes, to the bit. fma is how the kernel rounds
// a·b + c.
func MatVec(m *kernel.Matrix, file []byte, x []float32, fma func(a, b, c float32) float32) []float32 {
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
				q, d, sums := Quantised(x[32*b : 32*b+32])
				acc = twinBlock(m.Type, row, b, q, d, sums, acc, fma)
			}
			y[o] += acc
		}
	}
	return y
}

// twinBlock adds the product of 32 weights, block b of a row, and as many activations.
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

// twinSplit is twinBlock for types whose rows Recode converts.
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

// HalfDot is the sum of products of weights and activations that are rounded to half precision, and that of their
// magnitudes. x is scaled down before, if halves do not reach so far.
func HalfDot(w, x []float32) (sum, size float64) {
	half := func(v float32) float64 { return float64(quant.F16ToF32(quant.F32ToF16(v))) }
	factor := float32(1)
	for _, v := range x {
		for factor*max(v, -v) >= 1<<15 {
			factor /= 2
		}
	}
	for k, v := range x {
		p := half(w[k]) * half(factor*v) / float64(factor)
		sum, size = sum+p, size+math.Abs(p)
	}
	return sum, size
}

// Near holds products of rows of weights and x to those of float64, within a part of the sum of their magnitudes.
func Near(t testing.TB, products, weights, x []float32, part float64) {
	t.Helper()
	for o, got := range products {
		sum, size := 0.0, 0.0
		for i, v := range x {
			p := float64(weights[o*len(x)+i]) * float64(v)
			sum, size = sum+p, size+math.Abs(p)
		}
		require.InDelta(t, sum, got, part*size, "row %d", o)
	}
}

// NearHeads is Near for a matrix of each rows for each of some heads, whose rows of x have cols values a head. Only
// some rows of x are there; products of the others are zero.
func NearHeads(t testing.TB, products, weights, x []float32, heads, each, cols, there int) {
	t.Helper()
	for r := range len(products) / (heads * each) {
		row := products[r*heads*each:][:heads*each]
		if r >= there {
			require.Equal(t, make([]float32, len(row)), row, "row %d is not there", r)
			continue
		}
		for h := range heads {
			Near(t, row[h*each:][:each], weights[h*each*cols:], x[(r*heads+h)*cols:][:cols], 1e-6)
		}
	}
}
