package kernels

// Formats of 32 values with one scale.

func (b *block) unpackQ4_0(w []byte) {
	halves(&b.d, w)
	b.nibbles(w[32:288], 16)
	b.shift(32, -8)
}

func (b *block) unpackQ4_1(w []byte) {
	halves(&b.d, w)
	b.minimum(w[32:])
	b.nibbles(w[64:320], 16)
}

func (b *block) unpackQ5_0(w []byte) {
	halves(&b.d, w)
	b.nibbles(w[96:352], 16)
	b.fifthBits(w[32:96])
	b.shift(32, -16)
}

func (b *block) unpackQ5_1(w []byte) {
	halves(&b.d, w)
	b.minimum(w[32:])
	b.nibbles(w[128:384], 16)
	b.fifthBits(w[64:128])
}

func (b *block) unpackQ8_0(w []byte) {
	halves(&b.d, w)
	for i, q := range w[32:544] {
		r, k := lane(i)
		b.q[r][k] = int8(q)
	}
}

// minimum unpacks the m of blocks that are d·q + m. Prepared activations have -Σx, so it is -m·(-Σx).
func (b *block) minimum(w []byte) {
	halves(&b.m, w)
	for r := range TileRows {
		b.m[r][0] = -b.m[r][0]
		b.low[r] = [16]int32{-1, -1}
	}
}

// fifthBits adds bit 4 to nibbles; see bitsOf32.
func (b *block) fifthBits(w []byte) {
	for i, bits := range w {
		r, k := lane(i)
		for v := range 8 {
			b.q[r][4*v+k] |= int8(bits>>v&1) << 4
		}
	}
}
