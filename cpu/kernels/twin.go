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
//	quantised  for each span of k in order (what shares d and dx, one block in most formats):
//	           isum = Σ scale·q·x and msum = Σ low·x, exact integers, then acc = fma(d·dx, float(isum), acc) and,
//	           with minima, acc = fma(m·dx, float(msum), acc)
//	float      part[k%4] = fma(w[k], x[k], part[k%4]) in order of k, then (part0+part1) + (part2+part3)
//
// Integers become float32 by rounding to nearest even, as does every other operation. With |x| ≤ 127, quant.Bounds
// of a format bound its sums, in any order: TestSumsFit.

// block is one tile unpacked to plain integers and floats: 16 rows of up to 256 values along k.
type block struct {
	q          [TileRows][256]int8
	scale, low [TileRows][16]int32  // for each run of 16 values
	d, m       [TileRows][4]float32 // for each span, as above
}

// unpack unpacks a tile. It is a switch, since a table of functions would move every block to the heap.
func (b *block) unpack(t quant.Type, w []byte) {
	switch t {
	case quant.Q4_0:
		b.unpackQ4_0(w)
	case quant.Q4_1:
		b.unpackQ4_1(w)
	case quant.Q5_0:
		b.unpackQ5_0(w)
	case quant.Q5_1:
		b.unpackQ5_1(w)
	case quant.Q8_0:
		b.unpackQ8_0(w)
	case quant.Q2_K:
		b.unpackQ2_K(w)
	case quant.Q3_K:
		b.unpackQ3_K(w)
	case quant.Q4_K:
		b.unpackQ4_K(w)
	case quant.Q5_K:
		b.unpackQ5_K(w)
	case quant.Q6_K:
		b.unpackQ6_K(w)
	case quant.IQ4_NL:
		b.unpackIQ4_NL(w)
	case quant.IQ4_XS:
		b.unpackIQ4_XS(w)
	case quant.MXFP4:
		b.unpackMXFP4(w)
	case quant.TQ1_0:
		b.unpackTQ1_0(w)
	case quant.TQ2_0:
		b.unpackTQ2_0(w)
	case quant.NVFP4:
		b.unpackNVFP4(w)
	case quant.Q1_0:
		b.unpackQ1_0(w)
	case quant.Q2_0:
		b.unpackQ2_0(w)
	default:
		b.unpackGrid(t, w)
	}
}

// unpackGrid is unpack for formats of grids.
func (b *block) unpackGrid(t quant.Type, w []byte) {
	switch t {
	case quant.IQ1_S:
		b.unpackIQ1_S(w)
	case quant.IQ1_M:
		b.unpackIQ1_M(w)
	case quant.IQ2_XXS:
		b.unpackIQ2_XXS(w)
	case quant.IQ2_XS:
		b.unpackIQ2_XS(w)
	case quant.IQ2_S:
		b.unpackIQ2_S(w)
	case quant.IQ3_XXS:
		b.unpackIQ3_XXS(w)
	case quant.IQ3_S:
		b.unpackIQ3_S(w)
	default:
		panic("kernels: no twin for " + t.String())
	}
}

// lane returns the row r, and the byte k in the row's field, of byte i of a packed field with units of 4.
func lane(i int) (r, k int) { return i / 4 % TileRows, i/64*4 + i%4 }

// halves unpacks one half for each row.
func halves(dst *[TileRows][4]float32, w []byte) {
	for r := range dst {
		dst[r][0] = half(w[2*r:])
	}
}

// nibbles unpacks codes of 4 bits in nibble arrays of n bytes.
func (b *block) nibbles(w []byte, n int) {
	for i, q := range w {
		r, k := lane(i)
		at := k/n*2*n + k%n
		b.q[r][at], b.q[r][at+n] = int8(q&15), int8(q>>4)
	}
}

// shift adds c to n codes of each row.
func (b *block) shift(n int, c int8) {
	for r := range b.q {
		for k := range b.q[r][:n] {
			b.q[r][k] += c
		}
	}
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
	b := block{scale: ones()}
	form, bounds := x.Form, m.Type.Bounds()
	span, minima := min(bounds.Span, blockValues[form]), bounds.Low > 0
	n, size, row := m.Type.Block(), m.Type.Bytes()*TileRows, x.rowBytes()
	parts := n / span
	for i := range m.Cols / n {
		b.unpack(m.Type, w[i*size:][:size])
		for r := range x.Rows {
			for part := range parts {
				k := i*n + part*span
				at := x.Blocks[r*row+k/blockValues[form]*blockBytes[form]:]
				dx := math.Float32frombits(binary.LittleEndian.Uint32(at[blockScale[form]:]))
				b.add(out[r*stride:][:lanes], part, at[k%blockValues[form]:][:span], dx, minima)
			}
		}
	}
}

// add adds the products of a span with x.
func (b *block) add(acc []float32, part int, x []byte, dx float32, minima bool) {
	for o := range acc {
		var isum, msum int32
		for at := 0; at < len(x); at += 16 {
			s, x := (part*len(x)+at)/16, x[at:][:16]
			isum += b.scale[o][s] * dot(b.q[o][16*s:][:16], x)
			if minima {
				msum += b.low[o][s] * sum(x)
			}
		}
		acc[o] = vec.FMA(b.d[o][part]*dx, float32(isum), acc[o])
		if minima {
			acc[o] = vec.FMA(b.m[o][part]*dx, float32(msum), acc[o])
		}
	}
}

// ones are the scales of formats that have none.
func ones() (scale [TileRows][16]int32) {
	for r := range scale {
		for s := range scale[r] {
			scale[r][s] = 1
		}
	}
	return scale
}

func dot(q []int8, x []byte) (n int32) {
	x = x[:len(q)]
	for i, v := range q {
		n += int32(v) * int32(int8(x[i]))
	}
	return n
}
