package quant

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
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

// grids are definitions of the formats whose codes number points.
var grids = map[Type]func(b block, i int) (x, offset float64){
	IQ2_XXS: func(b block, i int) (x, offset float64) {
		k, word := i/8, 2+i/32*8
		s := parity(b.bits(word+4, 7*(k%4), 7))
		return b.f16(0) * (float64(b.bits(word+4, 28, 4)) + 0.5) / 4 * gridIQ2_XXS.value(int(b[word+k%4]), i, s), 0
	},
	IQ2_XS: func(b block, i int) (x, offset float64) {
		k := i / 8
		s := parity(b.bits(2+2*k, 9, 7))
		return b.f16(0) * (float64(b.bits(66, 4*(k/2), 4)) + 0.5) / 4 * gridIQ2_XS.value(b.bits(2+2*k, 0, 9), i, s), 0
	},
	IQ2_S: func(b block, i int) (x, offset float64) {
		k := i / 8
		index := int(b[2+k]) + 256*b.bits(66, 2*k, 2)
		return b.f16(0) * (float64(b.bits(74, 4*(k/2), 4)) + 0.5) / 4 * gridIQ2_S.value(index, i, int(b[34+k])), 0
	},
	IQ3_XXS: func(b block, i int) (x, offset float64) {
		word := 66 + i/32*4
		s := parity(b.bits(word, i/8%4*7, 7)) >> (i & 4)
		return b.f16(0) * (float64(b.bits(word, 28, 4)) + 0.5) / 2 * gridIQ3_XXS.value(int(b[2+i/4]), i, s), 0
	},
	IQ3_S: func(b block, i int) (x, offset float64) {
		index := int(b[2+i/4]) + 256*b.bits(66, i/4, 1)
		return b.f16(0) * float64(1+2*b.bits(106, i/32*4, 4)) * gridIQ3_S.value(index, i, b.bits(74, i&^3, 4)), 0
	},
	IQ1_S: func(b block, i int) (x, offset float64) {
		k, word := i/8, 34+i/32*2
		index := int(b[2+k]) + 256*b.bits(word, k%4*3, 3)
		shift := 0.125 - 0.25*float64(b.bits(word, 15, 1))
		return b.f16(0) * float64(1+2*b.bits(word, 12, 3)) * (gridIQ1.value(index, i, 0) + shift), 0
	},
	IQ1_M: func(b block, i int) (x, offset float64) {
		k, d := i/8, 0
		for n := range 4 {
			d |= b.bits(48+2*n, 12, 4) << (4 * n)
		}
		index, shift := int(b[k])+256*b.bits(32, 4*k, 3), 0.125-0.25*float64(b.bits(32, 4*k+3, 1))
		scale := b.bits(48+i/64*2, i/16%4*3, 3)
		return float64(F16ToF32(uint16(d))) * float64(1+2*scale) * (gridIQ1.value(index, i, 0) + shift), 0
	},
}

// value is coordinate i of a point, negative where that bit of signs is set.
func (g *grid) value(point, i, signs int) float64 {
	i %= g.values
	level := int(g.point(point)) / int(math.Pow(2, float64(g.bits*i))) % (1 << g.bits)
	return float64(g.levels[level]) * float64(1-2*(signs>>i&1))
}

// parity adds an eighth bit to seven, so that an even number is set.
func parity(seven int) int {
	for b := range 7 {
		seven ^= seven >> b & 1 << 7
	}
	return seven
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
		define := exact[typ]
		if define == nil {
			define = grids[typ]
		}
		require.NotNil(t, define, typ)
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				raw := rapid.SliceOfN(rapid.Byte(), 2*typ.Bytes(), 2*typ.Bytes()).Draw(t, "blocks")
				got := make([]float32, 2*typ.Block())
				require.NoError(t, Dequantize(typ, got, raw))
				for i := range got {
					b := block(raw[i/typ.Block()*typ.Bytes():][:typ.Bytes()])
					product, offset := define(b, i%typ.Block())
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

// TestDecodedIsFinite: where the scales of a block are finite, so is every value, but in MXFP4 blocks with an exponent
// of 253 and more, whose largest codes overflow, as in ggml.
func TestDecodedIsFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for id := range formats {
		typ := Type(id)
		if !HasCodec(typ) || typ.Block() == 1 {
			continue
		}
		raw, y := make([]byte, 64*typ.Bytes()), make([]float32, 64*typ.Block())
		require.NoError(t, Random(typ, raw, 1, rng)) // finite scales, any other bits
		for b := raw; formats[typ].size.random == nil && len(b) > 0; b = b[typ.Bytes():] {
			formats[typ].size.set(b, mostHalf, mostHalf)
		}
		for b := raw; typ == MXFP4 && len(b) > 0; b = b[typ.Bytes():] {
			b[0] = 252
		}
		require.NoError(t, Dequantize(typ, y, raw))
		for i, v := range y {
			require.Zero(t, v-v, "%s: value %d is %v", typ, i, v)
		}
	}
}

// TestWhole: tables of numbers are read as they are, those below 0, too.
func TestWhole(t *testing.T) {
	got := make([]float32, 3)
	Whole(got, []byte{7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 0, 0})
	require.Equal(t, []float32{7, -1, 513}, got)
}
