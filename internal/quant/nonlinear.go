package quant

import "encoding/binary"

// Formats whose codes index a table of values.

// nonlinear holds the values of IQ4 codes: denser near zero, where weights are.
var nonlinear = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func decodeIQ4_NL(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		d := half(src)
		for j, q := range src[2:18] {
			dst[j] = d * nonlinear[q&15]
			dst[j+16] = d * nonlinear[q>>4]
		}
	}
}

func decodeIQ4_XS(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[136:] {
		d, high := half(src), binary.LittleEndian.Uint16(src[2:])
		for s := range 8 {
			scale := int(src[4+s/2]>>(4*(s%2))&15) | int(high>>(2*s)&3)<<4
			ds := d * float32(scale-32)
			y := dst[32*s:]
			for j, q := range src[8+16*s:][:16] {
				y[j] = ds * nonlinear[q&15]
				y[j+16] = ds * nonlinear[q>>4]
			}
		}
	}
}

var (
	bookNonlinear = newCodebook(append(steps(-148, -88, 6), steps(94, 130, 6)...),
		-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
	scaledIQ4_XS = scaled{bookNonlinear, 32, -32, 31, 1, 1}
)

func encodeIQ4_NL(dst []byte, b *target) {
	b.encodeBook(dst, bookNonlinear)
	packNibbles(dst[2:], b.code[:32], 16)
}

func encodeIQ4_XS(dst []byte, b *target) {
	f := scaledIQ4_XS.encode(b)
	putHalf(dst, f.d)
	clear(dst[2:8])
	for s := range 8 {
		scale := uint16(f.scale[s] + 32)
		dst[2+s/4] |= byte(scale >> 4 << (2 * (s % 4)))
		dst[4+s/2] |= byte(scale & 15 << (4 * (s % 2)))
	}
	packNibbles(dst[8:], b.code[:], 16)
}
