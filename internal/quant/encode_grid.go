package quant

import (
	"encoding/binary"
	"sync"
)

// The search tables take some tenths of a second to compute, so they are made when first needed. The lists are
// the levels at which a run's largest value is tried; the last one, the lowest of all, is for runs whose values are all
// about equally large.
var (
	bookIQ2_XXS = onceGrid(&gridIQ2_XXS, 32, append(steps(31, 61, 6), 8))
	bookIQ2_XS  = onceGrid(&gridIQ2_XS, 16, append(steps(31, 61, 6), 8))
	bookIQ2_S   = onceGrid(&gridIQ2_S, 16, append(steps(31, 61, 6), 8))
	bookIQ3_XXS = onceGrid(&gridIQ3_XXS, 32, append(steps(50, 74, 6), 4))
	bookIQ3_S   = onceGrid(&gridIQ3_S, 32, append(steps(11.5, 17.5, 1.5), 1))
	bookIQ1_S   = sync.OnceValue(func() *gridBook { return &gridBook{tablesIQ1(), 32, 8, steps(6, 18, 3)} })
	bookIQ1_M   = sync.OnceValue(func() *gridBook { return &gridBook{tablesIQ1(), 8, 8, steps(6, 18, 3)} })
	tablesIQ1   = sync.OnceValue(func() []*gridTable { // counted in eighths
		return []*gridTable{newGridTable(&gridIQ1, 8, 8*shiftIQ1), newGridTable(&gridIQ1, 8, -8*shiftIQ1)}
	})
)

func onceGrid(g *grid, shared int, tries []float64) func() *gridBook {
	return sync.OnceValue(func() *gridBook {
		return &gridBook{[]*gridTable{newGridTable(g, 1, 0)}, shared, g.values, tries}
	})
}

// takeSigns makes all values positive, and returns a bit for each that was negative. With even, each group of 8 must
// have an even number of these: where it is odd, the value that costs least flips its sign bit, and stays negative.
func (b *target) takeSigns(even bool) (signs [32]byte) {
	for k := range signs {
		cheapest, flips := 8*k, 0
		for i := 8 * k; i < 8*k+8; i++ {
			if b.x[i] < 0 {
				b.x[i], b.wx[i] = -b.x[i], -b.wx[i]
				signs[k] |= 1 << (i % 8)
				flips++
			}
			if b.wx[i] < b.wx[cheapest] {
				cheapest = i
			}
		}
		if even && flips%2 == 1 {
			b.x[cheapest], b.wx[cheapest] = -b.x[cheapest], -b.wx[cheapest]
			signs[k] ^= 1 << (cheapest % 8)
		}
	}
	return signs
}

// sevenSigns packs the signs of 4 groups of 8: 7 of each, from which the eighth follows.
func sevenSigns(signs []byte) (word uint32) {
	for k, s := range signs[:4] {
		word |= uint32(s&127) << (7 * k)
	}
	return word
}

// oddScale encodes the scale 2s+1 as s.
func oddScale(scale float64) byte { return byte(scale) / 2 }

func encodeIQ2_XXS(dst []byte, b *target) {
	signs := b.takeSigns(true)
	k := scaled{bookIQ2_XXS(), 32, 1, 31, 2, 8}
	f := k.encode(b)
	putHalf(dst, f.d)
	for s := range 8 {
		q := dst[2+8*s:]
		for g := range 4 {
			q[g] = b.code[32*s+8*g]
		}
		binary.LittleEndian.PutUint32(q[4:], sevenSigns(signs[4*s:])|uint32(oddScale(f.scale[s]))<<28)
	}
}

func encodeIQ2_XS(dst []byte, b *target) {
	signs := b.takeSigns(true)
	k := scaled{bookIQ2_XS(), 16, 1, 31, 2, 8}
	f := k.encode(b)
	putHalf(dst, f.d)
	for g, s := range signs {
		index := binary.LittleEndian.Uint16(b.code[8*g:])
		binary.LittleEndian.PutUint16(dst[2+2*g:], index|uint16(s&127)<<9)
	}
	f.putOddScales(dst[66:74])
}

// putOddScales stores two scales a byte.
func (f *scaledFit) putOddScales(dst []byte) {
	for i := range dst {
		dst[i] = oddScale(f.scale[2*i]) | oddScale(f.scale[2*i+1])<<4
	}
}

func encodeIQ2_S(dst []byte, b *target) {
	signs := b.takeSigns(false)
	k := scaled{bookIQ2_S(), 16, 1, 31, 2, 8}
	f := k.encode(b)
	putHalf(dst, f.d)
	clear(dst[66:74])
	for g, s := range signs {
		dst[2+g], dst[34+g] = b.code[8*g], s
		dst[66+g/4] |= b.code[8*g+1] << (2 * (g % 4))
	}
	f.putOddScales(dst[74:82])
}

func encodeIQ3_XXS(dst []byte, b *target) {
	signs := b.takeSigns(true)
	k := scaled{bookIQ3_XXS(), 32, 1, 31, 2, 4}
	f := k.encode(b)
	putHalf(dst, f.d)
	for g := range 64 {
		dst[2+g] = b.code[4*g]
	}
	for s := range 8 {
		binary.LittleEndian.PutUint32(dst[66+4*s:], sevenSigns(signs[4*s:])|uint32(oddScale(f.scale[s]))<<28)
	}
}

func encodeIQ3_S(dst []byte, b *target) {
	signs := b.takeSigns(false)
	k := scaled{bookIQ3_S(), 32, 1, 31, 2, 1}
	f := k.encode(b)
	putHalf(dst, f.d)
	clear(dst[66:74])
	for g := range 64 {
		dst[2+g] = b.code[4*g]
		dst[66+g/8] |= b.code[4*g+1] << (g % 8)
	}
	copy(dst[74:106], signs[:])
	f.putOddScales(dst[106:110])
}

func encodeIQ1_S(dst []byte, b *target) {
	k := scaled{bookIQ1_S(), 32, 1, 15, 2, 8}
	f := k.encode(b)
	putHalf(dst, f.d)
	for s := range 8 {
		high := uint16(oddScale(f.scale[s]))<<12 | uint16(b.code[32*s+2])<<15
		for g := range 4 {
			c := b.code[32*s+8*g:]
			dst[2+4*s+g] = c[0]
			high |= uint16(c[1]) << (3 * g)
		}
		binary.LittleEndian.PutUint16(dst[34+2*s:], high)
	}
}

func encodeIQ1_M(dst []byte, b *target) {
	k := scaled{bookIQ1_M(), 16, 1, 15, 2, 8}
	f := k.encode(b)
	clear(dst[32:])
	for g := range 32 {
		c := b.code[8*g:]
		dst[g] = c[0]
		dst[32+g/2] |= (c[1] | c[2]<<3) << (4 * (g % 2))
	}
	for i := range 4 {
		var word uint16
		for s := range 4 {
			word |= uint16(oddScale(f.scale[4*i+s])) << (3 * s)
		}
		binary.LittleEndian.PutUint16(dst[48+2*i:], word)
	}
	putScaleIQ1_M(dst, F32ToF16(float32(f.d)))
}
