package kernels

import "encoding/binary"

// Formats of 256 values with scales of 16 or 32.

func (b *block) unpackQ2_K(w []byte) {
	b.twoBits(w[256:1280])
	for i, s := range w[:256] { // added is -dmin·min·Σx, as dmin times an integer: prepared activations have -Σx
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

// thirdBits swaps nibbles so that 16 bytes have the bits of each half of 128, which loops are made of. Byte k has the
// four runs of value k in the low nibble and of value 16+k in the high one; it is its own inverse.
var thirdBits = recoding{pack: swapNibbles, unpack: swapNibbles}

func swapNibbles(units []byte) {
	for k := range 16 {
		a, b := units[k], units[16+k]
		units[k], units[16+k] = a&15|b<<4, a>>4|b&0xf0
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

// unpackQ6_K: byte k of ql has the low nibbles of runs h and h+2 of 32 codes, h = 4·(k/64) + k/32%2; byte k of qh
// has bits 4-5 of runs 4·(k/32)+j in bits 2j.
func (b *block) unpackQ6_K(w []byte) {
	b.nibbles(w[:2048], 64)
	for i, high := range w[2048:3072] {
		r, k := lane(i)
		for j := range 4 {
			b.q[r][k/32*128+32*j+k%32] |= int8(high>>(2*j)&3) << 4
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

// sixBitScales regroups the 8 scales and 8 minima of a Q4_K or Q5_K block, 6 bits each, into three words of bytes
// that vector code takes apart with one shift and one mask each. Byte j of the words holds
//
//	word 0  low 4 bits of scale 2j, low 4 bits of scale 2j+1
//	word 1  low 4 bits of minimum σ(j), low 4 bits of minimum 4+σ(j), with σ = 0, 2, 1, 3
//	word 2  from bit 0 on, 2 bits each: the high bits of scale 2j, of scale 2j+1, of the two minima
//
// With σ the even bytes of a word are the minima of one pair of sub-blocks and the odd bytes those of the next.
var sixBitScales = recoding{pack: packScales, unpack: unpackScales}

// packScales: the bytes of a word are worked on together; see quant.UnpackScales for where the file has them.
func packScales(units []byte) {
	const low2, low4, low6 = 0x03030303, 0x0f0f0f0f, 0x3f3f3f3f
	order := binary.LittleEndian
	a, b, c := order.Uint32(units[0:]), order.Uint32(units[4:]), order.Uint32(units[8:])
	scales := uint64(a&low6) | uint64(c&low4|a>>2&0x30303030)<<32 // byte i: scale i
	m0, m1 := swapMiddle(b&low6), swapMiddle(c>>4&low4|b>>2&0x30303030)
	low, high := scales&(low4<<32|low4), scales>>4&(low2<<32|low2)
	order.PutUint32(units[0:], evenBytes(low|low>>4))
	order.PutUint32(units[4:], m0&low4|m1&low4<<4)
	order.PutUint32(units[8:], evenBytes(high|high>>6)|m0>>4&low2<<4|m1>>4&low2<<6)
}

// swapMiddle reorders bytes by σ.
func swapMiddle(x uint32) uint32 { return x&0xff0000ff | x>>8&0xff00 | x&0xff00<<8 }

// evenBytes puts bytes 0, 2, 4 and 6 together.
func evenBytes(x uint64) uint32 {
	x &= 0x00ff00ff00ff00ff
	x = (x | x>>8) & 0x0000ffff0000ffff
	return uint32(x | x>>16)
}

// splitScales is what packScales packed.
func splitScales(packed *[12]byte) (scales, mins [8]uint8) {
	for j, s := range [4]int{0, 2, 1, 3} {
		sc, mn, high := packed[j], packed[4+j], packed[8+j]
		scales[2*j], scales[2*j+1] = sc&15|high&3<<4, sc>>4|high>>2&3<<4
		mins[s], mins[s+4] = mn&15|high>>4&3<<4, mn>>4|high>>6<<4
	}
	return scales, mins
}

func unpackScales(units []byte) {
	file := (*[12]byte)(units)
	s, m := splitScales(file)
	for i := range 4 {
		file[i] = s[i] | s[i+4]>>4<<6
		file[i+4] = m[i] | m[i+4]>>4<<6
		file[i+8] = s[i+4]&15 | m[i+4]<<4
	}
}
