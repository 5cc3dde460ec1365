package kernels

// Formats of codes of two to four values, with one scale.

// unpackTQ1_0: a byte q is the fraction q/256, whose base-3 digits are codes; q·3 modulo 256 has the next digit in
// front. The first digits of 32 bytes are 32 codes in a row, then come the second digits, and so on.
func (b *block) unpackTQ1_0(w []byte) {
	for i, q := range w[:832] {
		r, k := lane(i)
		at, run, digits := k, 32, 5
		if k >= 48 {
			at, run, digits = 240+k-48, 4, 4
		} else if k >= 32 {
			at, run = 160+k-32, 16
		}
		for n := range digits {
			b.q[r][at+n*run] = int8(int(q)*3>>8) - 1
			q *= 3
		}
	}
	halves(&b.d, w[832:])
}

func (b *block) unpackTQ2_0(w []byte) {
	b.twoBits(w[:1024])
	b.shift(256, -1)
	halves(&b.d, w[1024:])
}

// unpackQ1_0: bits stand for -1 and 1; see bitsOf32.
func (b *block) unpackQ1_0(w []byte) {
	b.oneScale(w)
	for i, bits := range w[32:288] {
		r, k := lane(i)
		for v := range 8 {
			b.q[r][k/4*32+4*v+k%4] = int8(bits>>v&1)*2 - 1
		}
	}
}

// unpackQ2_0: see pairsOf16.
func (b *block) unpackQ2_0(w []byte) {
	b.oneScale(w)
	for i, q := range w[32:288] {
		r, k := lane(i)
		for v := range 4 {
			b.q[r][k/4*16+4*v+k%4] = int8(q>>(2*v)&3) - 1
		}
	}
}

// oneScale gives all spans of a block the same d.
func (b *block) oneScale(w []byte) {
	halves(&b.d, w)
	for r := range b.d {
		for s := range b.d[r] {
			b.d[r][s] = b.d[r][0]
		}
	}
}
