package kernels

import (
	"encoding/binary"
	"math/bits"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Formats whose codes number the points of a grid: groups of 8 or 4 values. Scales are stored as 2·scale+1; their
// factors of a half and a quarter are multiplied into d.

// The grids in the layout that vector code gathers. Byte j of a point has the level of value j in the low nibble and
// that of value 4+j in the high one.
var (
	gridIQ1     = [2048]uint32(arrange(quant.IQ1_S))
	gridIQ2_XXS = [256]uint32(arrange(quant.IQ2_XXS))
	gridIQ2_XS  = [512]uint32(arrange(quant.IQ2_XS))
	gridIQ2_S   = [1024]uint32(arrange(quant.IQ2_S))
	gridIQ3_XXS = [256]uint32(arrange(quant.IQ3_XXS))
	gridIQ3_S   = [512]uint32(arrange(quant.IQ3_S))
)

func arrange(t quant.Type) []uint32 {
	points := quant.Points(t)
	for i, levels := range points {
		points[i] = 0
		for j := range 8 {
			points[i] |= levels >> (4 * j) & 15 << (j%4*8 + j/4*4)
		}
	}
	return points
}

// Codes by level; 8 further on those of negative values. Codes of IQ1 are 8 times the values, which are shifted up or
// down by 1/8.
var (
	levelsIQ1     = [16]int8{-7, 1, 9, 8: -9, -1, 7}
	levelsIQ2     = [16]int8{8, 25, 43, 8: -8, -25, -43}
	levelsIQ3_XXS = [16]int8{4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62}
	levelsIQ3_S   = [16]int8{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15}
)

// A lattice says how numbers of points are decoded.
type lattice struct {
	grid   []uint32
	values int // of a point
	codes  [16]int8
	divide float32 // d is divided by it
}

var (
	latticeIQ1     = lattice{gridIQ1[:], 8, levelsIQ1, 8}
	latticeIQ2_XXS = lattice{gridIQ2_XXS[:], 8, levelsIQ2, 8}
	latticeIQ2_XS  = lattice{gridIQ2_XS[:], 8, levelsIQ2, 8}
	latticeIQ2_S   = lattice{gridIQ2_S[:], 8, levelsIQ2, 8}
	latticeIQ3_XXS = lattice{gridIQ3_XXS[:], 4, levelsIQ3_XXS, 4}
	latticeIQ3_S   = lattice{gridIQ3_S[:], 4, levelsIQ3_S, 1}
)

// A gridBlock is 32 values of a row.
type gridBlock struct {
	numbers [8]uint32 // of points; four if they have 8 values
	signs   uint32    // bit i for a negative value i
	scale   [2]uint32 // of each 16
}

// eachGrid unpacks 32 values after the other; at returns those of row r that begin at 32·s.
func (b *block) eachGrid(d []byte, l *lattice, at func(r, s int) gridBlock) {
	halves(&b.d, d)
	for r := range TileRows {
		b.d[r][0] /= l.divide
		for s := range 8 {
			g := at(r, s)
			for i := range 32 {
				j := i % l.values
				level := l.grid[g.numbers[i/l.values]] >> (j%4*8 + j/4*4) & 7
				b.q[r][32*s+i] = l.codes[level|g.signs>>i&1<<3]
			}
			b.scale[r][2*s], b.scale[r][2*s+1] = int32(2*g.scale[0]+1), int32(2*g.scale[1]+1)
		}
	}
}

// unit1, unit2 and unit4 read unit u of row r of a field.
func unit1(field []byte, u, r int) uint32 { return uint32(field[TileRows*u+r]) }
func unit2(field []byte, u, r int) uint32 {
	return uint32(binary.LittleEndian.Uint16(field[2*(TileRows*u+r):]))
}
func unit4(field []byte, u, r int) uint32 {
	return binary.LittleEndian.Uint32(field[4*(TileRows*u+r):])
}

// even sets the signs of a word, and returns the bits in the places of the eighth ones, see evenSigns.
func (g *gridBlock) even(word uint32) (other uint32) {
	word = fileBits(word)
	for k := range 4 {
		seven := word >> (8 * k) & 127
		g.signs |= (seven | uint32(bits.OnesCount32(seven)&1)<<7) << (8 * k)
		other |= word >> (8*k + 7) & 1 << k
	}
	return other
}

// scales sets the scales from their nibbles.
func (g *gridBlock) scales(nibbles uint32) { g.scale = [2]uint32{nibbles & 15, nibbles >> 4 & 15} }

func (b *block) unpackIQ2_XXS(w []byte) {
	b.eachGrid(w, &latticeIQ2_XXS, func(r, s int) (g gridBlock) {
		for k := range 4 {
			g.numbers[k] = unit4(w[32:], 2*s, r) >> (8 * k) & 255
		}
		scale := g.even(unit4(w[32:], 2*s+1, r))
		g.scales(scale | scale<<4)
		return g
	})
}

func (b *block) unpackIQ2_XS(w []byte) {
	b.eachGrid(w, &latticeIQ2_XS, func(r, s int) (g gridBlock) {
		ninth := g.even(unit4(w[32:], 2*s+1, r))
		for k := range 4 {
			g.numbers[k] = unit4(w[32:], 2*s, r)>>(8*k)&255 | ninth>>k&1<<8
		}
		g.scales(unit1(w[1056:], s, r))
		return g
	})
}

func (b *block) unpackIQ2_S(w []byte) {
	b.eachGrid(w, &latticeIQ2_S, func(r, s int) (g gridBlock) {
		for k := range 4 {
			g.numbers[k] = unit4(w[32:], s, r)>>(8*k)&255 | unit1(w[1056:], s, r)>>(2*k)&3<<8
		}
		g.signs = fileBits(unit4(w[544:], s, r))
		g.scales(unit1(w[1184:], s, r))
		return g
	})
}

func (b *block) unpackIQ3_XXS(w []byte) {
	b.eachGrid(w, &latticeIQ3_XXS, func(r, s int) (g gridBlock) {
		for k := range 8 {
			g.numbers[k] = unit4(w[32:], 2*s+k/4, r) >> (k % 4 * 8) & 255
		}
		scale := g.even(unit4(w[1056:], s, r))
		g.scales(scale | scale<<4)
		return g
	})
}

func (b *block) unpackIQ3_S(w []byte) {
	b.eachGrid(w, &latticeIQ3_S, func(r, s int) (g gridBlock) {
		for k := range 8 {
			g.numbers[k] = unit4(w[32:], 2*s+k/4, r)>>(k%4*8)&255 | unit1(w[1056:], s, r)>>k&1<<8
		}
		g.signs = fileBits(unit4(w[1184:], s, r))
		scale := unit4(w[1696:], 0, r) >> (4 * s) & 15
		g.scales(scale | scale<<4)
		return g
	})
}

func (b *block) unpackIQ1_S(w []byte) {
	b.eachGrid(w, &latticeIQ1, func(r, s int) (g gridBlock) {
		high := unit2(w[544:], s, r)
		for k := range 4 {
			g.numbers[k] = unit4(w[32:], s, r)>>(8*k)&255 | high>>(3*k)&7<<8
		}
		g.signs = -(high >> 15)
		g.scale = [2]uint32{high >> 12 & 7, high >> 12 & 7}
		return g
	})
}

func (b *block) unpackIQ1_M(w []byte) {
	b.eachGrid(w[768:], &latticeIQ1, func(r, s int) (g gridBlock) {
		high := unit2(w[512:], s, r)
		for k := range 4 {
			g.numbers[k] = unit4(w, s, r)>>(8*k)&255 | high>>(3*k)&7<<8
			g.signs |= -(high >> (12 + k) & 1) & 255 << (8 * k)
		}
		var words [4]uint16
		for i := range words {
			words[i] = uint16(unit2(w[768:], i, r))
		}
		g.scale = [2]uint32{uint32(scaleIQ1_M(&words, 2*s)), uint32(scaleIQ1_M(&words, 2*s+1))}
		return g
	})
}
