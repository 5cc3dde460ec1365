package quant

import (
	"encoding/binary"
	"math"
)

// Without importance these formats are encoded as by ggml's reference, in its float32 arithmetic and to the byte: the
// largest value gets the last code. With importance they are searched like the others.

var (
	bookQ4_0 = newCodebook(steps(-9.5, -6.5, 0.25), steps(-8, 7, 1)...)
	bookQ5_0 = newCodebook(steps(-17.5, -14.5, 0.25), steps(-16, 15, 1)...)
)

func encodeQ8_0(dst []byte, b *target) {
	d := magnitude(b.src) / 127
	binary.LittleEndian.PutUint16(dst, F32ToF16(d))
	inverse := reciprocal(d)
	for j, x := range b.src {
		dst[2+j] = byte(int8(math.Round(float64(x * inverse)))) // ties away from zero, as roundf
	}
}

func encodeQ4_0(dst []byte, b *target) {
	b.encodeSigned(dst, 8, bookQ4_0)
	packNibbles(dst[2:], b.code[:32], 16)
}

func encodeQ5_0(dst []byte, b *target) {
	b.encodeSigned(dst, 16, bookQ5_0)
	packFifth(dst[2:], b.code[:32])
	packNibbles(dst[6:], b.code[:32], 16)
}

func encodeQ4_1(dst []byte, b *target) {
	b.encodeOffset(dst, 15)
	packNibbles(dst[4:], b.code[:32], 16)
}

func encodeQ5_1(dst []byte, b *target) {
	b.encodeOffset(dst, 31)
	packFifth(dst[4:], b.code[:32])
	packNibbles(dst[8:], b.code[:32], 16)
}

// packFifth gathers bit 4 of 32 codes.
func packFifth(dst []byte, code []uint8) {
	var high uint32
	for j, c := range code {
		high |= uint32(c>>4) << j
	}
	binary.LittleEndian.PutUint32(dst, high)
}

// encodeSigned stores d, and finds codes from 0 to 2·zero-1. The value of largest magnitude gets code 0.
func (b *target) encodeSigned(dst []byte, zero float32, book *codebook) {
	if b.weighted {
		b.encodeBook(dst, book)
		return
	}
	var most, signed float32
	for _, x := range b.src {
		if a := abs(x); a > most {
			most, signed = a, x
		}
	}
	d := signed / -zero
	binary.LittleEndian.PutUint16(dst, F32ToF16(d))
	inverse := reciprocal(d)
	for j, x := range b.src {
		b.code[j] = uint8(min(2*zero-1, float32(x*inverse)+zero+0.5))
	}
}

// encodeBook stores d and codes of a block that is a single run.
func (b *target) encodeBook(dst []byte, book *codebook) {
	r := &b.cut(len(b.src))[0]
	d := asHalf(book.fit(r))
	putHalf(dst, d)
	book.encode(r, d)
}

// encodeOffset stores d and m, of any sign, and finds codes from 0, for the least value, to top.
func (b *target) encodeOffset(dst []byte, top float32) {
	if b.weighted {
		b.encodeOffsetWeighted(dst, float64(top))
		return
	}
	least, most := b.src[0], b.src[0]
	for _, x := range b.src {
		least, most = min(least, x), max(most, x)
	}
	d := float32(most-least) / top
	binary.LittleEndian.PutUint16(dst, F32ToF16(d))
	binary.LittleEndian.PutUint16(dst[2:], F32ToF16(least))
	inverse := reciprocal(d)
	for j, x := range b.src {
		b.code[j] = uint8(min(top, float32((x-least)*inverse)+0.5))
	}
}

func (b *target) encodeOffsetWeighted(dst []byte, top float64) {
	r := &b.cut(len(b.src))[0]
	a := affine{top: top, signed: true}
	d, low := a.fit(r, r.moments())
	d, low = asHalf(d), asHalf(low)
	putHalf(dst, d)
	putHalf(dst[2:], -low)
	for j, v := range r.x {
		r.code[j] = uint8(level((v+low)*inverse(d), top))
	}
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

func magnitude(src []float32) (most float32) {
	for _, x := range src {
		most = max(most, abs(x))
	}
	return most
}

// reciprocal is 1/d, and 0 for a block of zeros.
func reciprocal(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}
