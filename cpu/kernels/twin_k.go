package kernels

// Formats of 256 values with scales of 16 or 32.

func (b *block) unpackQ2_K(w []byte) {
	b.twoBits(w[256:1280])
	for i, s := range w[:256] { // to be added is -dmin·min·Σx, as dmin times an integer: prepared activations have -Σx
		b.scale[i%TileRows][i/TileRows], b.low[i%TileRows][i/TileRows] = int32(s&15), -int32(s>>4)
	}
	halves(&b.d, w[1280:])
	halves(&b.m, w[1312:])
}

// unpackQ3_K: bit i of byte k of the third bits belongs to run i%4 of 32 in a half of 128, see thirdBits.
func (b *block) unpackQ3_K(w []byte) {
	b.twoBits(w[512:1536])
	for i, bits := range w[:512] {
		r, k := lane(i)
		for j := range 8 {
			b.q[r][k/16*128+j%4*32+j/4*16+k%16] |= int8(bits>>j&1) << 2
		}
	}
	b.shift(256, -4)
	for i, low := range w[1536:1664] {
		r, k := lane(i)
		high := w[1664+4*r+k%4]
		for j := range 2 {
			s := 8*j + k
			b.scale[r][s] = int32(low>>(4*j)&15|high>>(s/4*2)&3<<4) - 32
		}
	}
	halves(&b.d, w[1728:])
}

// twoBits unpacks codes of 2 bits: 32 bytes have four runs of 32 codes, from the low bits on.
func (b *block) twoBits(w []byte) {
	for i, q := range w {
		r, k := lane(i)
		for run := range 4 {
			b.q[r][k/32*128+32*run+k%32] = int8(q >> (2 * run) & 3)
		}
	}
}

func (b *block) unpackQ4_K(w []byte) {
	b.scales(w)
	b.nibbles(w[256:2304], 32)
}

func (b *block) unpackQ5_K(w []byte) {
	b.scales(w)
	b.nibbles(w[768:2816], 32)
	for i, high := range w[256:768] {
		r, k := lane(i)
		for s := range 8 {
			b.q[r][32*s+k] |= int8(high>>s&1) << 4
		}
	}
}

// unpackQ6_K: see fourthCodes.
func (b *block) unpackQ6_K(w []byte) {
	for h := range 2 {
		first, second, third := runsOf(w[:3072], h)
		for i, x := range first {
			y, z := second[i], third[i]
			r, k := lane(i)
			codes := &b.q[r]
			codes[128*h+k], codes[128*h+32+k], codes[128*h+64+k] = int8(x&63), int8(y&63), int8(z&63)
			codes[128*h+96+k] = int8(x>>6<<4 | y>>6<<2 | z>>6)
		}
	}
	b.shift(256, -32)
	for i, s := range w[3072:3328] {
		b.scale[i%TileRows][i/TileRows] = int32(int8(s))
	}
	halves(&b.d, w[3328:])
}

// scales unpacks d, dmin, and the scales and minima of Q4_K and Q5_K.
func (b *block) scales(w []byte) {
	halves(&b.d, w)
	halves(&b.m, w[32:])
	for r := range TileRows {
		b.m[r][0] = -b.m[r][0]
		var packed [12]byte
		gather(packed[:], w[64:256], 4, r)
		scales, mins := splitScales(&packed)
		for s := range 16 {
			b.scale[r][s], b.low[r][s] = int32(scales[s/2]), int32(mins[s/2])
		}
	}
}
