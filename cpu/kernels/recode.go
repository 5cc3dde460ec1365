package kernels

import "encoding/binary"

// Masks for 8 bytes.
const (
	low2   = 0x0303030303030303
	low4   = 0x0f0f0f0f0f0f0f0f
	low6   = 0x3f3f3f3f3f3f3f3f
	bits23 = 0x0c0c0c0c0c0c0c0c
	bits45 = 0x3030303030303030
	top2   = 0xc0c0c0c0c0c0c0c0
)

// recoding rearranges the bits of a field. pack does so with 16 rows of a block, side by side; unpack restores the
// file's bits of one row.
type recoding struct {
	pack, unpack func(units []byte)
	by           int // index of the transposer that recodes as well, 0 if there is none
}

// swapBits exchanges each bit of the mask with the one n further up.
func swapBits(x, mask uint64, n int) uint64 {
	t := (x>>n ^ x) & mask
	return x ^ t ^ t<<n
}

// words applies a change to each 4-byte unit, two units at a time.
func words(change func(x uint64) uint64) func(units []byte) {
	return func(units []byte) {
		for ; len(units) >= 8; units = units[8:] {
			store8(units, change(load8(units)))
		}
		if len(units) > 0 {
			binary.LittleEndian.PutUint32(units, uint32(change(uint64(binary.LittleEndian.Uint32(units)))))
		}
	}
}

// bitsOf32 moves bit i of 32 to bit i/4 of byte i%4, which shifts move to the bytes of the 4 codes from i/4·4 on. The
// bits of i are exchanged two by two: 4 and 1, 3 and 0, 2 and 1, 1 and 0.
var bitsOf32 = recoding{pack: words(transpose), unpack: words(transposeBack)}

func transpose(x uint64) uint64 {
	x = swapBits(swapBits(x, 0x0000cccc_0000cccc, 14), 0x00aa00aa_00aa00aa, 7)
	return swapBits(swapBits(x, 0x0c0c0c0c_0c0c0c0c, 2), 0x22222222_22222222, 1)
}

func transposeBack(x uint64) uint64 {
	x = swapBits(swapBits(x, 0x22222222_22222222, 1), 0x0c0c0c0c_0c0c0c0c, 2)
	return swapBits(swapBits(x, 0x00aa00aa_00aa00aa, 7), 0x0000cccc_0000cccc, 14)
}

// fileBits restores the order of 32 bits that the file has.
func fileBits(x uint32) uint32 { return uint32(transposeBack(uint64(x))) }

// pairsOf16 moves pair i of 16 pairs of bits to pair i/4 of byte i%4; it is its own inverse.
var pairsOf16 = recoding{pack: words(swapPairs), unpack: words(swapPairs)}

func swapPairs(x uint64) uint64 {
	return swapBits(swapBits(x, 0x00cc00cc_00cc00cc, 6), 0x0000f0f0_0000f0f0, 12)
}

// thirdBits swaps nibbles so that 16 bytes have the bits of one half of 128 values, which kernels loop over. Byte k has
// the four runs of value k in the low nibble and of value 16+k in the high one; it is its own inverse.
var thirdBits = recoding{pack: swapNibbles, unpack: swapNibbles}

// swapNibbles swaps the high nibbles of the first half of the bytes with the low ones of the second.
func swapNibbles(units []byte) {
	for x, y := units[:len(units)/2], units[len(units)/2:]; len(x) >= 8 && len(y) >= 8; x, y = x[8:], y[8:] {
		a, b := load8(x), load8(y)
		store8(x, a&low4|b&low4<<4)
		store8(y, a>>4&low4|b&^low4)
	}
}

// fourthCodes packs four 6-bit codes into three bytes: each byte has one code in its low bits, and 2 bits of the fourth
// code on top, so that most codes need only a mask. In each half of 128, bytes i of the two halves of ql and of qh have
// value i of runs 0, 1 and 2; their top bits, in this order, are bits 4-5, 2-3 and 0-1 of value i of run 3.
var fourthCodes = recoding{pack: packFourth, unpack: unpackFourth, by: fourths}

// runsOf are the units of three runs in half h of 128.
func runsOf(units []byte, h int) (a, b, c []byte) {
	n := len(units) / 6
	return units[2*n*h:][:n], units[2*n*h+n:][:n], units[(4+h)*n:][:n]
}

func packFourth(units []byte) {
	for h := range 2 {
		for a, b, c := runsOf(units, h); len(a) >= 8 && len(b) >= 8 && len(c) >= 8; a, b, c = a[8:], b[8:], c[8:] {
			x, y, z := load8(a), load8(b), load8(c)
			store8(a, x&low4|z&low2<<4|z&top2)
			store8(b, y&^bits45|z<<2&bits45)
			store8(c, x>>4&low4|z&bits45|y<<2&top2)
		}
	}
}

func unpackFourth(units []byte) {
	for h := range 2 {
		for a, b, c := runsOf(units, h); len(a) >= 8 && len(b) >= 8 && len(c) >= 8; a, b, c = a[8:], b[8:], c[8:] {
			x, y, z := load8(a), load8(b), load8(c)
			store8(a, x&low4|z&low4<<4)
			store8(b, y&^bits45|z>>2&bits45)
			store8(c, x>>4&low2|y>>2&bits23|z&bits45|x&top2)
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

// packScales works on the bytes of words of two rows together; see quant.UnpackScales for where the file has them.
func packScales(units []byte) {
	third := len(units) / 3
	for x, y, z := units[:third], units[third:2*third], units[2*third:]; len(x) >= 8 && len(y) >= 8 && len(z) >= 8; {
		a, b, c := load8(x), load8(y), load8(z)
		s0, s1 := a&low6, c&low4|a>>2&bits45 // scales 0 to 3, 4 to 7
		m0, m1 := swapMiddle(b&low6), swapMiddle(c>>4&low4|b>>2&bits45)
		l0, l1, h0, h1 := s0&low4, s1&low4, s0>>4&low2, s1>>4&low2
		store8(x, evenBytes(l0|l0>>4)|evenBytes(l1|l1>>4)<<16)
		store8(y, m0&low4|m1&low4<<4)
		store8(z, evenBytes(h0|h0>>6)|evenBytes(h1|h1>>6)<<16|m0>>4&low2<<4|m1>>4&low2<<6)
		x, y, z = x[8:], y[8:], z[8:]
	}
}

// swapMiddle reorders the bytes of both words by σ.
func swapMiddle(x uint64) uint64 {
	return x&0xff0000ffff0000ff | x>>8&0x0000ff000000ff00 | x&0x0000ff000000ff00<<8
}

// evenBytes puts bytes 0 and 2 of both words together.
func evenBytes(x uint64) uint64 {
	x &= 0x00ff00ff00ff00ff
	return (x | x>>8) & low16
}

// splitScales unpacks the scales and minima that packScales packed.
func splitScales(packed *[12]byte) (scales, mins [8]uint8) {
	for j, s := range [4]int{0, 2, 1, 3} {
		sc, mn, high := packed[j], packed[4+j], packed[8+j]
		scales[2*j], scales[2*j+1] = sc&15|high&3<<4, sc>>4|high>>2&3<<4
		mins[s], mins[s+4] = mn&15|high>>4&3<<4, mn>>4|high>>6<<4
	}
	return scales, mins
}

func unpackScales(units []byte) {
	for ; len(units) >= 12; units = units[12:] {
		file := (*[12]byte)(units)
		s, m := splitScales(file)
		for i := range 4 {
			file[i] = s[i] | s[i+4]>>4<<6
			file[i+4] = m[i] | m[i+4]>>4<<6
			file[i+8] = s[i+4]&15 | m[i+4]<<4
		}
	}
}
