package quant

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// block reads single bits of a block, so that the layouts below are said once more in other words: value i is
// found by arithmetic on i alone, where the decoders walk.
type block []byte

func (b block) f16(at int) float64 { return float64(F16ToF32(binary.LittleEndian.Uint16(b[at:]))) }

// bits reads n bits from bit number first of the little-endian bit string that starts at byte at.
func (b block) bits(at, first, n int) int {
	v := 0
	for k := range n {
		bit := first + k
		v |= int(b[at+bit/8]>>(bit%8)&1) << k
	}
	return v
}

// nibble is code i of 2n codes in n bytes at at.
func (b block) nibble(at, n, i int) int { return b.bits(at, 8*(i%n)+4*(i/n), 4) }

// scaleK is scale i of a Q4_K or Q5_K block, or minimum i with min 4.
func (b block) scaleK(i, min int) float64 {
	if i < 4 {
		return float64(b.bits(4+min+i, 0, 6))
	}
	return float64(b.bits(12+i-4, min, 4) | b.bits(4+min+i-4, 6, 2)<<4)
}

// exact is the real number that value i of a block stands for: a product and, in some formats, an offset.
var exact = map[Type]func(b block, i int) (x, offset float64){
	Q4_0: func(b block, i int) (x, offset float64) { return b.f16(0) * float64(b.nibble(2, 16, i)-8), 0 },
	Q4_1: func(b block, i int) (x, offset float64) { return b.f16(0) * float64(b.nibble(4, 16, i)), b.f16(2) },
	Q5_0: func(b block, i int) (x, offset float64) {
		return b.f16(0) * float64(b.nibble(6, 16, i)+16*b.bits(2, i, 1)-16), 0
	},
	Q5_1: func(b block, i int) (x, offset float64) {
		return b.f16(0) * float64(b.nibble(8, 16, i)+16*b.bits(4, i, 1)), b.f16(2)
	},
	Q8_0: func(b block, i int) (x, offset float64) { return b.f16(0) * float64(int8(b[2+i])), 0 },
	Q2_K: func(b block, i int) (x, offset float64) {
		q := b.bits(16, 8*(i/128*32+i%32)+2*(i/32%4), 2)
		return b.f16(80) * float64(b[i/16]&15) * float64(q), -b.f16(82) * float64(b[i/16]>>4)
	},
	Q3_K: func(b block, i int) (x, offset float64) {
		q := b.bits(32, 8*(i/128*32+i%32)+2*(i/32%4), 2) + 4*b.bits(0, 8*(i%32)+i/32, 1) - 4
		s := i / 16
		scale := b.nibble(96, 8, s) + 16*b.bits(104, 8*(s%4)+2*(s/4), 2) - 32
		return b.f16(108) * float64(scale) * float64(q), 0
	},
	Q4_K: func(b block, i int) (x, offset float64) {
		q := b.nibble(16+i/64*32, 32, i%64)
		return b.f16(0) * b.scaleK(i/32, 0) * float64(q), -b.f16(2) * b.scaleK(i/32, 4)
	},
	Q5_K: func(b block, i int) (x, offset float64) {
		q := b.nibble(48+i/64*32, 32, i%64) + 16*b.bits(16, 8*(i%32)+i/32, 1)
		return b.f16(0) * b.scaleK(i/32, 0) * float64(q), -b.f16(2) * b.scaleK(i/32, 4)
	},
	Q6_K: func(b block, i int) (x, offset float64) {
		q := b.nibble(i/128*64, 64, i%128) + 16*b.bits(128+i/128*32, 8*(i%32)+2*(i/32%4), 2) - 32
		return b.f16(208) * float64(int8(b[192+i/16])) * float64(q), 0
	},
	IQ4_NL: func(b block, i int) (x, offset float64) { return b.f16(0) * float64(nonlinear[b.nibble(2, 16, i)]), 0 },
	IQ4_XS: func(b block, i int) (x, offset float64) {
		s := i / 32
		scale := b.bits(4, 4*s, 4) + 16*b.bits(2, 2*s, 2) - 32
		return b.f16(0) * float64(scale) * float64(nonlinear[b.nibble(8+16*s, 16, i%32)]), 0
	},
	MXFP4: func(b block, i int) (x, offset float64) {
		return math.Ldexp(e2m1(b.nibble(1, 16, i)), int(b[0])-127), 0
	},
	NVFP4: func(b block, i int) (x, offset float64) {
		scale := b[i/16]
		if scale == 0x7f {
			return 0, 0
		}
		m, e := float64(scale&7)/8, int(scale>>3&15)
		if e > 0 {
			m++
		}
		return math.Ldexp(m*e2m1(b.nibble(4+i/16*8, 8, i%16)), max(e, 1)-7), 0
	},
	TQ1_0: func(b block, i int) (x, offset float64) {
		at, digit := 0, i/32
		switch {
		case i >= 240:
			at, digit = 48+i%4, (i-240)/4
		case i >= 160:
			at, digit = 32+i%16, (i-160)/16
		default:
			at = i % 32
		}
		fraction := float64(b[at]) / 256 * math.Pow(3, float64(digit))
		_, fraction = math.Modf(fraction)
		return b.f16(52) * (math.Floor(3*fraction) - 1), 0
	},
	TQ2_0: func(b block, i int) (x, offset float64) {
		return b.f16(64) * float64(b.bits(0, 8*(i/128*32+i%32)+2*(i/32%4), 2)-1), 0
	},
	Q1_0: func(b block, i int) (x, offset float64) { return b.f16(0) * float64(2*b.bits(2, i, 1)-1), 0 },
	Q2_0: func(b block, i int) (x, offset float64) { return b.f16(0) * float64(b.bits(2, 2*i, 2)-1), 0 },
}

// e2m1 is a 4-bit float: a sign, 2 bits of exponent, 1 of mantissa.
func e2m1(code int) float64 {
	m := float64(code&1) / 2 // exponent 0: subnormal
	if e := code >> 1 & 3; e > 0 {
		m = math.Ldexp(1+m, e-1)
	}
	return math.Copysign(m, 4-float64(code&8))
}

// TestDecodersAgainstDefinition compares each decoder with the definition of its format, to float32 rounding.
func TestDecodersAgainstDefinition(t *testing.T) {
	for id := range formats {
		typ := Type(id)
		if !HasCodec(typ) || typ == F32 || typ == F16 || typ == BF16 {
			continue
		}
		require.Contains(t, exact, typ)
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				raw := rapid.SliceOfN(rapid.Byte(), 2*typ.Bytes(), 2*typ.Bytes()).Draw(t, "blocks")
				got := make([]float32, 2*typ.Block())
				require.NoError(t, Dequantize(typ, got, raw))
				for i := range got {
					b := block(raw[i/typ.Block()*typ.Bytes():][:typ.Bytes()])
					product, offset := exact[typ](b, i%typ.Block())
					size := math.Abs(product) + math.Abs(offset)
					if !(size <= math.MaxFloat32) {
						continue // the scale itself is not finite, or the value too large for a float32
					}
					// At most two products and one sum, each within 2⁻²⁴; 2⁻¹⁴⁹ is the last float32.
					require.InDelta(t, product+offset, got[i], size*0x1p-22+0x1p-149, "value %d", i)
				}
			})
		})
	}
}
