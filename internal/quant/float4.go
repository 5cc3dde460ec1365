package quant

import "math"

// Blocks of 4-bit floats, E2M1: MXFP4 with a power of two as scale, NVFP4 with small floats.

// fp4Doubled has twice the value of each E2M1 code, which makes all of them integers.
var fp4Doubled = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func decodeMXFP4(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[17:] {
		d := powerOfTwoHalved(src[0])
		for j, q := range src[1:17] {
			dst[j] = fp4Doubled[q&15] * d
			dst[j+16] = fp4Doubled[q>>4] * d
		}
	}
}

// powerOfTwoHalved is 2^(e-128), half of what the E8M0 number e stands for; below e = 2 it is subnormal.
func powerOfTwoHalved(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

func decodeNVFP4(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[64:], src[36:] {
		for s := range 4 {
			d := ue4m3Halved(src[s])
			y := dst[16*s:]
			for j, q := range src[4+8*s:][:8] {
				y[j] = fp4Doubled[q&15] * d
				y[j+8] = fp4Doubled[q>>4] * d
			}
		}
	}
}

// ue4m3Halved is half of the number that an E4M3 byte stands for, its sign bit ignored: 4 bits of exponent, biased by
// 7, and 3 of mantissa. 0x7f is NaN in E4M3, and 0 here; 0xff is read as if it were an ordinary number, as ggml does.
func ue4m3Halved(b byte) float32 {
	exponent, mantissa := int(b>>3&15), float32(b&7)
	switch {
	case b == 0x7f:
		return 0
	case exponent == 0:
		return mantissa * 0x1p-10
	}
	return (1 + mantissa/8) * math.Float32frombits(uint32(exponent-8+127)<<23)
}

// bookFP4 tries scales that map the largest value to ±12, beyond it (it is clipped), or below it (the last code is
// unused).
var bookFP4 = newCodebook([]float64{8, 9, 10, 11, 12, 13, 14}, 0, 1, 2, 3, 4, 6, 8, 12, -0, -1, -2, -3, -4, -6, -8, -12)

// encodeMXFP4 tries the exponents around that of the largest value. From 253 on, the largest code overflows.
func encodeMXFP4(dst []byte, b *target) {
	r := &b.cut(32)[0]
	_, exponent := math.Frexp(float64(magnitude(b.src))) // 4 to 6 is the range of the last two codes
	best := math.Inf(1)
	for e := max(0, exponent+123); e <= min(252, exponent+125); e++ {
		d := float64(powerOfTwoHalved(byte(e)))
		if err := bookFP4.error(r, d); err < best {
			best, dst[0] = err, byte(e)
		}
	}
	bookFP4.encode(r, float64(powerOfTwoHalved(dst[0])))
	packNibbles(dst[1:], r.code, 16)
}

// encodeNVFP4 tries the scales around the best unrounded one.
func encodeNVFP4(dst []byte, b *target) {
	runs := b.cut(16)
	for s := range runs {
		r := &runs[s]
		near := int(belowUE4M3(math.Abs(2 * bookFP4.fit(r))))
		best := math.Inf(1)
		for e := max(0, near-1); e <= min(0x7e, near+2); e++ {
			if err := bookFP4.error(r, float64(ue4m3Halved(byte(e)))); err < best {
				best, dst[s] = err, byte(e)
			}
		}
		bookFP4.encode(r, float64(ue4m3Halved(dst[s])))
		packNibbles(dst[4+8*s:], r.code, 8)
	}
}

// belowUE4M3 is the code of the largest number up to x; codes ascend with their numbers.
func belowUE4M3(x float64) (code byte) {
	for step := byte(64); step > 0; step /= 2 {
		if next := code + step; next <= 0x7e && 2*float64(ue4m3Halved(next)) <= x {
			code = next
		}
	}
	return code
}
