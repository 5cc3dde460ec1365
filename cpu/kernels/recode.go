package kernels

import "encoding/binary"

// recoding rearranges the bits of a field, or of several one after another; unpack is the inverse of pack.
type recoding struct{ pack, unpack func(units []byte) }

// swapBits exchanges each bit of the mask with the one n further up.
func swapBits(x, mask uint32, n int) uint32 {
	t := (x>>n ^ x) & mask
	return x ^ t ^ t<<n
}

// words changes units of 4 bytes, each on its own.
func words(change func(x uint32) uint32) func(units []byte) {
	return func(units []byte) {
		for ; len(units) > 0; units = units[4:] {
			binary.LittleEndian.PutUint32(units, change(binary.LittleEndian.Uint32(units)))
		}
	}
}

// bitsOf32 moves bit i of 32 to bit i/4 of byte i%4, which shifts move to the bytes of the 4 codes from i/4·4 on. The
// bits of i are exchanged two by two: 4 and 1, 3 and 0, 2 and 1, 1 and 0.
var bitsOf32 = recoding{pack: words(transpose), unpack: words(transposeBack)}

func transpose(x uint32) uint32 {
	x = swapBits(swapBits(x, 0x0000cccc, 14), 0x00aa00aa, 7)
	return swapBits(swapBits(x, 0x0c0c0c0c, 2), 0x22222222, 1)
}

func transposeBack(x uint32) uint32 {
	x = swapBits(swapBits(x, 0x22222222, 1), 0x0c0c0c0c, 2)
	return swapBits(swapBits(x, 0x00aa00aa, 7), 0x0000cccc, 14)
}

// pairsOf16 moves pair i of 16 pairs of bits to pair i/4 of byte i%4; it is its own inverse.
var pairsOf16 = recoding{pack: words(swapPairs), unpack: words(swapPairs)}

func swapPairs(x uint32) uint32 { return swapBits(swapBits(x, 0x00cc00cc, 6), 0x0000f0f0, 12) }

// thirdBits swaps nibbles so that 16 bytes have the bits of each half of 128, which loops are made of. Byte k has the
// four runs of value k in the low nibble and of value 16+k in the high one; it is its own inverse.
var thirdBits = recoding{pack: swapNibbles, unpack: swapNibbles}

func swapNibbles(units []byte) {
	for ; len(units) > 0; units = units[32:] {
		for k := range 16 {
			a, b := units[k], units[16+k]
			units[k], units[16+k] = a&15|b<<4, a>>4|b&0xf0
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
	for ; len(units) >= 12; units = units[12:] {
		a, b, c := order.Uint32(units[0:]), order.Uint32(units[4:]), order.Uint32(units[8:])
		scales := uint64(a&low6) | uint64(c&low4|a>>2&0x30303030)<<32 // byte i: scale i
		m0, m1 := swapMiddle(b&low6), swapMiddle(c>>4&low4|b>>2&0x30303030)
		low, high := scales&(low4<<32|low4), scales>>4&(low2<<32|low2)
		order.PutUint32(units[0:], evenBytes(low|low>>4))
		order.PutUint32(units[4:], m0&low4|m1&low4<<4)
		order.PutUint32(units[8:], evenBytes(high|high>>6)|m0>>4&low2<<4|m1>>4&low2<<6)
	}
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
