package kernels

import "encoding/binary"

// Signs of 32 values are recoded as bitsOf32. Where the file has 7 of each 8, there is room for four other bits.

// evenSigns has words of four times 7 signs, then a scale of 4 bits, whose bits take the places of the eighth signs.
var evenSigns = recoding{pack: words(packSigns), unpack: words(unpackSigns)}

func packSigns(x uint32) uint32 {
	var natural uint32
	for k := range 4 {
		natural |= (x>>(7*k)&127 | x>>(28+k)&1<<7) << (8 * k)
	}
	return transpose(natural)
}

func unpackSigns(x uint32) (file uint32) {
	for k, natural := 0, transposeBack(x); k < 4; k, natural = k+1, natural>>8 {
		file |= natural&127<<(7*k) | natural>>7&1<<(28+k)
	}
	return file
}

// numbersThenSigns is evenSigns in every second word; the first has 4 numbers of 8 bits.
var numbersThenSigns = recoding{
	pack:   func(units []byte) { secondWords(units, packSigns) },
	unpack: func(units []byte) { secondWords(units, unpackSigns) },
}

func secondWords(units []byte, change func(x uint32) uint32) {
	for ; len(units) > 0; units = units[8:] {
		word := units[4:8]
		binary.LittleEndian.PutUint32(word, change(binary.LittleEndian.Uint32(word)))
	}
}

// ninthBits turns four half words, each with 9 bits of a number and 7 signs, into a word of 4 numbers of 8 bits and one
// of signs, with the ninth bits in the places of the eighth signs.
var ninthBits = recoding{pack: packNinth, unpack: unpackNinth}

func packNinth(units []byte) {
	for ; len(units) > 0; units = units[8:] {
		var numbers, signs uint32
		for k := range 4 {
			q := uint32(binary.LittleEndian.Uint16(units[2*k:]))
			numbers |= q & 255 << (8 * k)
			signs |= (q>>9 | q>>8&1<<7) << (8 * k)
		}
		binary.LittleEndian.PutUint32(units, numbers)
		binary.LittleEndian.PutUint32(units[4:], transpose(signs))
	}
}

func unpackNinth(units []byte) {
	for ; len(units) > 0; units = units[8:] {
		numbers, signs := binary.LittleEndian.Uint32(units), transposeBack(binary.LittleEndian.Uint32(units[4:]))
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
	for ; len(units) > 0; units = units[8:] {
		var words [4]uint16
		for s := range 16 {
			file := binary.LittleEndian.Uint16(units[s/4*2:])
			if scale := file >> (s % 4 * 3) & 7; s < 15 {
				words[1+s/5] |= scale << (s % 5 * 3)
			} else {
				words[1], words[2], words[3] = words[1]|scale&1<<15, words[2]|scale>>1&1<<15, words[3]|scale>>2<<15
			}
			words[0] |= file >> 12 << (s / 4 * 4)
		}
		putWords(units, &words)
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
		putWords(units, &file)
	}
}

func putWords(units []byte, words *[4]uint16) {
	for i, w := range words {
		binary.LittleEndian.PutUint16(units[2*i:], w)
	}
}

// scaleIQ1_M is scale s of what halfThenScales packed.
func scaleIQ1_M(words *[4]uint16, s int) uint16 {
	if s < 15 {
		return words[1+s/5] >> (s % 5 * 3) & 7
	}
	return words[1]>>15 | words[2]>>15<<1 | words[3]>>15<<2
}
