package quant

var (
	bookTernary = newCodebook(steps(1, 3.5, 0.25), -1, 0, 1)
	bookQ1_0    = newCodebook([]float64{1}, -1, 1)
	bookQ2_0    = newCodebook(append(steps(1, 4, 0.25), steps(-3, -1, 0.25)...), -1, 0, 1, 2)
)

func encodeTQ1_0(dst []byte, b *target) {
	b.encodeBook(dst[52:], bookTernary)
	code := b.code[:]
	for _, part := range digitsTQ1_0 {
		for j := range part.bytes {
			n := uint16(0)
			for digit := range 5 {
				n *= 3
				if digit < part.digits {
					n += uint16(code[part.bytes*digit+j])
				}
			}
			dst[part.at+j] = byte((n*256 + 242) / 243) // the fraction n/3⁵ of 256, rounded up
		}
		code = code[part.bytes*part.digits:]
	}
}

func encodeTQ2_0(dst []byte, b *target) {
	b.encodeBook(dst[64:], bookTernary)
	packPairs(dst[:64], &b.code)
}

func encodeQ1_0(dst []byte, b *target) {
	b.encodeBook(dst, bookQ1_0)
	clear(dst[2:])
	for j, c := range b.code[:128] {
		dst[2+j/8] |= c << (j % 8)
	}
}

func encodeQ2_0(dst []byte, b *target) {
	b.encodeBook(dst, bookQ2_0)
	clear(dst[2:])
	for j, c := range b.code[:64] {
		dst[2+j/4] |= c << (2 * (j % 4))
	}
}
