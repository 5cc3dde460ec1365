package quant

// Formats whose codes have a handful of values: bits, pairs of bits, digits of base 3.

func decodeTQ1_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[54:] {
		d, y := half(src[52:]), dst
		for _, part := range digitsTQ1_0 {
			power := byte(1)
			for range part.digits {
				for j, q := range src[part.at:][:part.bytes] {
					y[j] = float32(int(digit(q*power))-1) * d
				}
				y, power = y[part.bytes:], power*3
			}
		}
	}
}

// digitsTQ1_0 are the runs of bytes of a TQ1_0 block: the first digits of a run's bytes are consecutive values, then
// the second digits, and so on.
var digitsTQ1_0 = [...]struct{ at, bytes, digits int }{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}}

// digit is the first base-3 digit of a byte q, read as the fraction q/256. Multiplying the byte by 3, without the
// overflow, brings the next digit to the front.
func digit(q byte) byte { return byte(uint16(q) * 3 >> 8) }

func decodeTQ2_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[66:] {
		d := half(src[64:])
		for r := range 8 { // runs of 32: four in each half of 128
			y := dst[32*r:]
			for j, q := range src[32*(r/4):][:32] {
				y[j] = float32(int(q>>(2*(r%4))&3)-1) * d
			}
		}
	}
}

func decodeQ1_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[128:], src[18:] {
		d := half(src)
		for j := range 128 {
			dst[j] = -d
			if src[2+j/8]>>(j%8)&1 == 1 {
				dst[j] = d
			}
		}
	}
}

func decodeQ2_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[64:], src[18:] {
		d := half(src)
		for j := range 64 {
			dst[j] = float32(int(src[2+j/4]>>(2*(j%4))&3)-1) * d
		}
	}
}
