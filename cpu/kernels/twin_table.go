package kernels

import "math"

// Formats whose codes of 4 bits stand for the values of a table.

func (b *block) unpackIQ4_NL(w []byte) {
	halves(&b.d, w)
	b.nibbles(w[32:288], 16)
	b.lookUp(32, &nonlinear)
}

func (b *block) unpackIQ4_XS(w []byte) {
	halves(&b.d, w)
	for r := range TileRows {
		high, low := uint32(w[32+2*r])|uint32(w[33+2*r])<<8, w[64+4*r:][:4]
		for s := range 16 {
			i := s / 2
			b.scale[r][s] = int32(uint32(low[i/2]>>(i%2*4)&15)|high>>(2*i)&3<<4) - 32
		}
	}
	b.nibbles(w[128:2176], 16)
	b.lookUp(256, &nonlinear)
}

// unpackMXFP4: the table has twice the values, so that d is 2^(e-128), which is subnormal for e < 2.
func (b *block) unpackMXFP4(w []byte) {
	for r := range TileRows {
		b.d[r][0] = float32(math.Ldexp(1, int(w[r])-128))
	}
	b.nibbles(w[16:272], 16)
	b.lookUp(32, &fp4Doubled)
}

// unpackNVFP4: a scale is an unsigned E4M3 number, 4 bits of exponent, biased by 7, and 3 of mantissa; d is half of it
// since the table has twice the values. Moved to their places in a float32 these bits are 2^-119 times d, for
// subnormal numbers as well. 0x7f is not a number, and 0 in ggml; the highest bit counts for nothing else.
func (b *block) unpackNVFP4(w []byte) {
	for i, e := range w[:64] {
		if e != 0x7f {
			b.d[i%TileRows][i/TileRows] = math.Float32frombits(uint32(e&0x7f)<<20) * 0x1p119
		} else {
			b.d[i%TileRows][i/TileRows] = 0
		}
	}
	b.nibbles(w[64:576], 8)
	b.lookUp(64, &fp4Doubled)
}

// lookUp replaces n codes of each row by their values.
func (b *block) lookUp(n int, values *[16]int8) {
	for r := range b.q {
		for k, q := range b.q[r][:n] {
			b.q[r][k] = values[q]
		}
	}
}

// The tables of internal/quant as integers.
var (
	nonlinear  = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	fp4Doubled = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)
