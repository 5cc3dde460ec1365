package quant

import (
	_ "embed" // for grids.bin
	"encoding/binary"
	"math/bits"
)

// The IQ1, IQ2 and IQ3 formats encode groups of 8 or 4 values at once, as the number of a point of a grid. The
// points were chosen by ggml's authors from lattices (E8 and D4); the list below is data of the format, as in
// ggml-common.h. A point is 16 bits: 8 levels of 2 bits or 4 levels of 3, the first value lowest. The points of a grid
// are in rising order.
//
//go:embed grids.bin
var gridPoints string

// grid is a list of points.
type grid struct {
	points string // little-endian uint16
	values int    // of a point
	bits   int    // of a level
	levels []float32
}

var (
	levels2 = []float32{8, 25, 43}
	levels1 = []float32{-1, 0, 1}

	gridIQ2_XXS = grid{gridPoints[0:512], 8, 2, levels2}
	gridIQ2_XS  = grid{gridPoints[512:1536], 8, 2, levels2}
	gridIQ2_S   = grid{gridPoints[1536:3584], 8, 2, levels2}
	gridIQ1     = grid{gridPoints[3584:7680], 8, 2, levels1}
	gridIQ3_XXS = grid{gridPoints[7680:8192], 4, 3, []float32{4, 12, 20, 28, 36, 44, 52, 62}}
	gridIQ3_S   = grid{gridPoints[8192:9216], 4, 3, []float32{1, 3, 5, 7, 9, 11, 13, 15}}
)

// Points returns the points of the grid of an IQ1, IQ2 or IQ3 format: four bits for the level of each value, the first
// value lowest. Levels number the magnitudes, or for IQ1 the values, in ascending order.
func Points(t Type) (points []uint32) {
	g := map[Type]grid{
		IQ1_S: gridIQ1, IQ1_M: gridIQ1, IQ2_XXS: gridIQ2_XXS, IQ2_XS: gridIQ2_XS, IQ2_S: gridIQ2_S,
		IQ3_XXS: gridIQ3_XXS, IQ3_S: gridIQ3_S,
	}[t]
	for i := range len(g.points) / 2 {
		var levels uint32
		for j, p := 0, g.point(i); j < g.values; j, p = j+1, p>>g.bits {
			levels |= uint32(p&(1<<g.bits-1)) << (4 * j)
		}
		points = append(points, levels)
	}
	return points
}

func (g *grid) point(i int) uint16 { return uint16(g.points[2*i]) | uint16(g.points[2*i+1])<<8 }

// decode sets the values of point i, with bit j of signs for a negative value j.
func (g *grid) decode(y []float32, i int, scale float32, signs byte) {
	p := g.point(i)
	for j := range y[:g.values] {
		y[j] = scale * g.levels[p>>(g.bits*j)&(1<<g.bits-1)]
		if signs>>j&1 == 1 {
			y[j] = -y[j]
		}
	}
}

// evenSigns adds the eighth sign to 7, so that the number of negative values is even.
func evenSigns(seven uint32) byte {
	seven &= 127
	return byte(seven) | byte(bits.OnesCount32(seven)&1)<<7
}

func decodeIQ2_XXS(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[66:] {
		d := half(src)
		for s := range 8 {
			q := src[2+8*s:]
			word := binary.LittleEndian.Uint32(q[4:])
			scale := float32(d*(0.5+float32(word>>28))) * 0.25
			for k := range 4 {
				gridIQ2_XXS.decode(dst[32*s+8*k:], int(q[k]), scale, evenSigns(word>>(7*k)))
			}
		}
	}
}

func decodeIQ2_XS(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[74:] {
		d, scales := half(src), src[66:74]
		for k := range 32 { // groups of 8: two for each nibble of scales
			q := binary.LittleEndian.Uint16(src[2+2*k:])
			scale := float32(d*(0.5+float32(nibble(scales, k/2)))) * 0.25
			gridIQ2_XS.decode(dst[8*k:], int(q&511), scale, evenSigns(uint32(q>>9)))
		}
	}
}

// nibble is the i-th half byte, low half of a byte first.
func nibble(b []byte, i int) byte { return b[i/2] >> (4 * (i % 2)) & 15 }

func decodeIQ2_S(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[82:] {
		d, low, signs, high, scales := half(src), src[2:34], src[34:66], src[66:74], src[74:82]
		for k := range 32 {
			index := int(low[k]) | int(high[k/4]>>(2*(k%4))&3)<<8
			scale := float32(d*(0.5+float32(nibble(scales, k/2)))) * 0.25
			gridIQ2_S.decode(dst[8*k:], index, scale, signs[k])
		}
	}
}

func decodeIQ3_XXS(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[98:] {
		d, index := half(src), src[2:66]
		for k := range 32 {
			word := binary.LittleEndian.Uint32(src[66+4*(k/4):])
			scale := float32(d*(0.5+float32(word>>28))) * 0.5
			signs := evenSigns(word >> (7 * (k % 4)))
			gridIQ3_XXS.decode(dst[8*k:], int(index[2*k]), scale, signs)
			gridIQ3_XXS.decode(dst[8*k+4:], int(index[2*k+1]), scale, signs>>4)
		}
	}
}

func decodeIQ3_S(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[110:] {
		d, low, high, signs, scales := half(src), src[2:66], src[66:74], src[74:106], src[106:110]
		for k := range 64 { // groups of 4
			index := int(low[k]) | int(high[k/8]>>(k%8)&1)<<8
			scale := d * float32(1+2*nibble(scales, k/8))
			gridIQ3_S.decode(dst[4*k:], index, scale, signs[k/2]>>(4*(k%2)))
		}
	}
}

// shiftIQ1 is what is added to all values of a group of IQ1, or subtracted.
const shiftIQ1 = 0.125

func decodeIQ1_S(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[50:] {
		d := half(src)
		for s := range 8 {
			high := binary.LittleEndian.Uint16(src[34+2*s:])
			scale := d * float32(2*(high>>12&7)+1)
			for k := range 4 {
				index := int(src[2+4*s+k]) | int(high>>(3*k)&7)<<8
				decodeIQ1(dst[32*s+8*k:], index, scale, high>>15 == 1)
			}
		}
	}
}

func decodeIQ1_M(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[56:] {
		d := F16ToF32(scaleIQ1_M(src))
		for k := range 32 {
			high := nibble(src[32:], k)
			scales := binary.LittleEndian.Uint16(src[48+2*(k/8):])
			scale := d * float32(2*(scales>>(3*(k/2%4))&7)+1)
			decodeIQ1(dst[8*k:], int(src[k])|int(high&7)<<8, scale, high>>3 == 1)
		}
	}
}

func decodeIQ1(y []float32, index int, scale float32, down bool) {
	shift := float32(shiftIQ1)
	if down {
		shift = -shift
	}
	p := gridIQ1.point(index)
	for j := range y[:8] {
		y[j] = scale * (levels1[p>>(2*j)&3] + shift)
	}
}

// scaleIQ1_M gathers a block's scale, a half: the high nibbles of its four words of scales, the first lowest.
func scaleIQ1_M(block []byte) (h uint16) {
	for i := range 4 {
		h |= uint16(block[49+2*i]>>4) << (4 * i)
	}
	return h
}

func putScaleIQ1_M(block []byte, h uint16) {
	for i := range 4 {
		block[49+2*i] = block[49+2*i]&15 | byte(h>>(4*i)&15)<<4
	}
}
