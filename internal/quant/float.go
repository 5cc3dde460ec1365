package quant

import "math"

// F16ToF32 widens an IEEE half; every half has an exact float32. Signalling NaNs become quiet, as VCVTPH2PS does.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	magnitude := uint32(h & 0x7fff)
	switch {
	case magnitude > 0x7c00: // NaN: keep the payload, set the quiet bit
		return math.Float32frombits(sign | 0x7fc00000 | magnitude<<13)
	case magnitude == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	case magnitude >= 0x0400: // normal: the exponent bias grows from 15 to 127
		return math.Float32frombits(sign | (magnitude<<13 + (127-15)<<23))
	}
	// Subnormal: magnitude · 2⁻²⁴, exact.
	return math.Float32frombits(sign | math.Float32bits(float32(magnitude)*0x1p-24))
}

// F32ToF16 rounds to the nearest half, ties to even. NaNs stay NaN and become quiet, as VCVTPS2PH does.
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000:
		return sign | 0x7e00 | uint16(bits>>13)&0x3ff
	case bits >= 0x477ff000: // 65520, half way from the largest half to the next power of two
		return sign | 0x7c00
	case bits < 0x38800000: // below 2⁻¹⁴, the smallest normal half
		// Near 0.5 a float32 has steps of 2⁻²⁴, the step of subnormal halves: the addition rounds.
		return sign | uint16(math.Float32bits(math.Float32frombits(bits)+0.5)-math.Float32bits(0.5))
	}
	bits += 0xfff + bits>>13&1 // a tie rounds up only if the kept part is odd
	return sign | uint16(bits>>13-(127-15)<<10)
}

// BF16ToF32 widens a bfloat16, the upper half of a float32.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16, ties to even. NaNs stay NaN and become quiet.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
