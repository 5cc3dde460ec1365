package quant

var (
	affineQ2_K = affine{size: 16, top: 3, most: 15}
	affineQ4_K = affine{size: 32, top: 15, most: 63}
	affineQ5_K = affine{size: 32, top: 31, most: 63}
	scaledQ3_K = scaled{newCodebook(steps(-5.35, -2.65, 0.15), steps(-4, 3, 1)...), 16, -32, 31, 1, 1}
	scaledQ6_K = scaled{newCodebook(steps(-33, -31, 0.2), steps(-32, 31, 1)...), 16, -128, 127, 1, 1}
)

func encodeQ2_K(dst []byte, b *target) {
	f := affineQ2_K.encode(b)
	for s := range 16 {
		dst[s] = byte(f.scale[s]) | byte(f.low[s])<<4
	}
	packPairs(dst[16:80], &b.code)
	putHalf(dst[80:], f.d)
	putHalf(dst[82:], f.dmin)
}

func encodeQ3_K(dst []byte, b *target) {
	f := scaledQ3_K.encode(b)
	clear(dst)
	for j, c := range b.code {
		dst[j%32] |= c >> 2 << (j / 32)
	}
	packPairs(dst[32:96], &b.code)
	for s := range 16 {
		scale := byte(f.scale[s] + 32)
		dst[96+s%8] |= scale & 15 << (4 * (s / 8))
		dst[104+s%4] |= scale >> 4 << (2 * (s / 4))
	}
	putHalf(dst[108:], f.d)
}

// packPairs stores the low 2 bits of 256 codes as Q2_K and Q3_K lay them out.
func packPairs(dst []byte, code *[256]uint8) {
	for j := range dst {
		c := code[128*(j/32)+j%32:]
		dst[j] = c[0]&3 | c[32]&3<<2 | c[64]&3<<4 | c[96]<<6
	}
}

func encodeQ4_K(dst []byte, b *target) {
	f := affineQ4_K.encode(b)
	f.packScales(dst)
	packNibbles(dst[16:], b.code[:], 32)
}

func encodeQ5_K(dst []byte, b *target) {
	f := affineQ5_K.encode(b)
	f.packScales(dst)
	clear(dst[16:48])
	for j, c := range b.code {
		dst[16+j%32] |= c >> 4 << (j / 32)
	}
	packNibbles(dst[48:], b.code[:], 32)
}

// packScales stores d, dmin, and the scales and minima of a Q4_K or Q5_K block; UnpackScales reads them.
func (f *affineFit) packScales(dst []byte) {
	putHalf(dst, f.d)
	putHalf(dst[2:], f.dmin)
	for i := range 4 {
		s, l := byte(f.scale[i+4]), byte(f.low[i+4])
		dst[4+i] = byte(f.scale[i]) | s>>4<<6
		dst[8+i] = byte(f.low[i]) | l>>4<<6
		dst[12+i] = s&15 | l<<4
	}
}

func encodeQ6_K(dst []byte, b *target) {
	f := scaledQ6_K.encode(b)
	packNibbles(dst, b.code[:], 64)
	for j := range 64 {
		c := b.code[128*(j/32)+j%32:]
		dst[128+j] = c[0]>>4 | c[32]>>4<<2 | c[64]>>4<<4 | c[96]>>4<<6
	}
	for s, scale := range f.scale {
		dst[192+s] = byte(int8(scale))
	}
	putHalf(dst[208:], f.d)
}

// packNibbles stores the low 4 bits of the codes in nibble arrays of n bytes.
func packNibbles(dst []byte, code []uint8, n int) {
	for ; len(code) > 0; dst, code = dst[n:], code[2*n:] {
		for j := range n {
			dst[j] = code[j]&15 | code[j+n]<<4
		}
	}
}
