package kernels

import "encoding/binary"

// Signs of 32 values are recoded as bitsOf32. Where the file has 7 of each 8 signs, four other bits fit in the gaps.

// evenSigns recodes words of four times 7 signs and a 4-bit scale: the scale's bits take the places of the eighth
// signs.
var evenSigns = recoding{pack: words(packSigns), unpack: words(unpackSigns)}

func packSigns(x uint64) uint64 {
	var natural uint64
	for k := range 4 {
		natural |= (x>>(7*k)&0x7f_0000007f | x>>(28+k)&0x1_00000001<<7) << (8 * k)
	}
	return transpose(natural)
}

func unpackSigns(x uint64) (file uint64) {
	for k, natural := 0, transposeBack(x); k < 4; k++ {
		file |= natural>>(8*k)&0x7f_0000007f<<(7*k) | natural>>(8*k+7)&0x1_00000001<<(28+k)
	}
	return file
}

// numbersThenSigns is evenSigns in every second word; the first has 4 numbers of 8 bits.
var numbersThenSigns = recoding{pack: secondWords(4*TileRows, packSigns), unpack: secondWords(4, unpackSigns)}

// secondWords changes the words of every second run of n bytes.
func secondWords(n int, change func(x uint64) uint64) func(units []byte) {
	each := words(change)
	return func(units []byte) {
		for ; len(units) > 0; units = units[2*n:] {
			each(units[n : 2*n])
		}
	}
}

// ninthBits turns four half words, each with 9 bits of a number and 7 signs, into a word of 4 numbers of 8 bits and one
// of signs, with the ninth bits in the places of the eighth signs.
var ninthBits = recoding{pack: packNinth, unpack: unpackNinth}

func packNinth(units []byte) {
	const lane = 4 * TileRows
	for ; len(units) > 0; units = units[2*lane:] {
		for x, y := units[:lane], units[lane:2*lane]; len(x) >= 8 && len(y) >= 8; x, y = x[8:], y[8:] {
			a, b := load8(x), load8(y)
			store8(x, evenBytes(a)|evenBytes(b)<<16)
			store8(y, transpose(evenBytes(ninthAbove(a))|evenBytes(ninthAbove(b))<<16))
		}
	}
}

// ninthAbove moves the signs of half words to their low bytes, and the ninth bits above them.
func ninthAbove(q uint64) uint64 {
	return q>>9&0x007f007f007f007f | q>>1&0x0080008000800080
}

func unpackNinth(units []byte) {
	for ; len(units) > 0; units = units[8:] {
		numbers, signs := binary.LittleEndian.Uint32(units), fileBits(binary.LittleEndian.Uint32(units[4:]))
		for k := range 4 {
			n, s := numbers>>(8*k)&255, signs>>(8*k)
			binary.LittleEndian.PutUint16(units[2*k:], uint16(n|s>>7&1<<8|s&127<<9))
		}
	}
}

// shiftsAbove turns four nibbles, each with 3 bits of a number and a sign, into 4 times 3 bits and 4 signs above.
var shiftsAbove = recoding{pack: packShifts, unpack: unpackShifts}

func packShifts(units []byte) {
	for ; len(units) > 0; units = units[2:] {
		var packed uint16
		for k, q := 0, binary.LittleEndian.Uint16(units); k < 4; k, q = k+1, q>>4 {
			packed |= q&7<<(3*k) | q>>3&1<<(12+k)
		}
		binary.LittleEndian.PutUint16(units, packed)
	}
}

func unpackShifts(units []byte) {
	for ; len(units) > 0; units = units[2:] {
		var file uint16
		for k, q := 0, binary.LittleEndian.Uint16(units); k < 4; k++ {
			file |= (q>>(3*k)&7 | q>>(12+k)&1<<3) << (4 * k)
		}
		binary.LittleEndian.PutUint16(units, file)
	}
}

// halfThenScales turns four half words, each with 4 scales of 3 bits and a quarter of a half-precision number above,
// into that number and three half words with 5 scales, and the last scale's bits above.
var halfThenScales = recoding{pack: packHalf, unpack: unpackHalf}

func packHalf(units []byte) {
	const lane = 2 * TileRows
	for r := 0; r < lane; r += 2 {
		var file, words [4]uint16
		for i := range file {
			file[i] = binary.LittleEndian.Uint16(units[i*lane+r:])
			words[0] |= file[i] >> 12 << (4 * i)
		}
		for s := range 16 {
			if scale := file[s/4] >> (s % 4 * 3) & 7; s < 15 {
				words[1+s/5] |= scale << (s % 5 * 3)
			} else {
				words[1], words[2], words[3] = words[1]|scale&1<<15, words[2]|scale>>1&1<<15, words[3]|scale>>2<<15
			}
		}
		for i, w := range words {
			binary.LittleEndian.PutUint16(units[i*lane+r:], w)
		}
	}
}

func unpackHalf(units []byte) {
	for ; len(units) > 0; units = units[8:] {
		var words, file [4]uint16
		for i := range words {
			words[i] = binary.LittleEndian.Uint16(units[2*i:])
			file[i] = words[0] >> (4 * i) << 12
		}
		for s := range 16 {
			file[s/4] |= scaleIQ1_M(&words, s) << (s % 4 * 3)
		}
		for i, q := range file {
			binary.LittleEndian.PutUint16(units[2*i:], q)
		}
	}
}

// scaleIQ1_M is scale s of the words that halfThenScales packed.
func scaleIQ1_M(words *[4]uint16, s int) uint16 {
	if s < 15 {
		return words[1+s/5] >> (s % 5 * 3) & 7
	}
	return words[1]>>15 | words[2]>>15<<1 | words[3]>>15<<2
}
