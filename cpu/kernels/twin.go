package kernels

import (
	"encoding/binary"
	"math"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/quant"
)

// This file is the arithmetic of the products: every set repeats it to the bit. NaNs count as one value, since
// which payload survives an operation depends on the order of operands.
//
//	quantised  for each block of k in order: isum = Σ scale·q·x and msum = Σ min·x, exact integers, then
//	           acc = fma(d·dx, float(isum), acc) and, with minima, acc = fma(-(dmin·dx), float(msum), acc)
//	float      part[k%4] = fma(w[k], x[k], part[k%4]) in order of k, then (part0+part1) + (part2+part3)
//
// Integers become float32 by rounding to nearest even, as does every other operation. Bounds, |x| ≤ 127:
//
//	      codes     scales   |isum| ≤                        |msum| ≤
//	Q8_0  -128…127  1        32·128·127 = 520 192
//	Q4_0  -8…7      1        32·8·127 = 32 512
//	Q4_K  0…15      0…63     256·15·63·127 = 30 723 840     256·63·127 = 2 048 256
//	Q5_K  0…31      0…63     256·31·63·127 = 63 495 936     2 048 256
//	Q6_K  -32…31    -128…127 256·32·128·127 = 133 169 152
//
// All are below 2³¹, and so are the partial sums, in any order.

// block is one tile taken apart: 16 rows × up to 256 k.
type block struct {
	q       [TileRows][256]int8
	scale   [TileRows][16]int32 // for each 16 of k
	low     [TileRows][8]int32  // for each 32 of k
	d, dmin [TileRows]float32
}

// twin computes lanes outputs of a row tile for all rows of x.
func twin(out []float32, stride, lanes int, m *Matrix, tile int, x *Acts) {
	w := m.strip(tile)
	if x.Form != Plain {
		twinBlocks(out, stride, lanes, m, w, x)
		return
	}
	for r := range x.Rows {
		twinFloat(out[r*stride:][:lanes], m.Type, w, x.Float[r*x.Stride:][:x.Cols])
	}
}

func twinFloat(out []float32, t quant.Type, w []byte, x []float32) {
	for o := range out {
		var part [4]float32
		for k, v := range x {
			part[k%4] = vec.FMA(floatAt(t, w, TileRows*k+o), v, part[k%4])
		}
		out[o] = (part[0] + part[1]) + (part[2] + part[3])
	}
}

func floatAt(t quant.Type, w []byte, i int) float32 {
	switch t {
	case quant.F16:
		return half(w[2*i:])
	case quant.BF16:
		return quant.BF16ToF32(binary.LittleEndian.Uint16(w[2*i:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(w[4*i:]))
}

func twinBlocks(out []float32, stride, lanes int, m *Matrix, w []byte, x *Acts) {
	for r := range x.Rows {
		clear(out[r*stride:][:lanes])
	}
	var b block
	n, size, row := m.Type.Block(), m.Type.Bytes()*TileRows, x.rowBytes()
	for i := range m.Cols / n {
		b.unpack(m.Type, w[i*size:][:size])
		for r := range x.Rows {
			acc := out[r*stride:][:lanes]
			if n == 256 {
				b.add256(acc, x.Blocks[r*row+i*x256Bytes:][:x256Bytes], m.Type != quant.Q6_K)
			} else {
				b.add32(acc, x.Blocks[r*row+i*x32Bytes:][:x32Bytes])
			}
		}
	}
}

func float32At(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

func dot(q []int8, x []byte) (n int32) {
	x = x[:len(q)]
	for i, v := range q {
		n += int32(v) * int32(int8(x[i]))
	}
	return n
}

func (b *block) add32(acc []float32, x []byte) {
	dx := float32At(x[x32Scale:])
	for o := range acc {
		isum := dot(b.q[o][:32], x)
		acc[o] = vec.FMA(b.d[o]*dx, float32(isum), acc[o])
	}
}

func (b *block) add256(acc []float32, x []byte, minima bool) {
	dx := float32At(x[x256Scale:])
	for o := range acc {
		var isum, msum int32
		for s, scale := range b.scale[o] {
			isum += scale * dot(b.q[o][16*s:16*s+16], x[16*s:])
		}
		acc[o] = vec.FMA(b.d[o]*dx, float32(isum), acc[o])
		if !minima {
			continue
		}
		for s, low := range b.low[o] {
			msum += low * int32(int16(binary.LittleEndian.Uint16(x[x256Sums+2*s:])))
		}
		acc[o] = vec.FMA(-(b.dmin[o] * dx), float32(msum), acc[o])
	}
}
