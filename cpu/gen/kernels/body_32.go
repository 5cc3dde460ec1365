package main

import "fmt"

// Formats of 32 with one scale.

func (b *blocks) q4_0() {
	b.startAt("DX", x32Neg, 3) // codes are 8 too large
	b.dots(b.nibbles32(32, nil), 15, true)
	b.end32()
}

func (b *blocks) q4_1() {
	b.dots(b.nibbles32(64, nil), 15, false)
	b.end32()
	b.minimum32()
}

func (b *blocks) q5_0() {
	b.startAt("DX", x32Neg, 4) // codes are 16 too large
	b.dots(b.nibbles32(96, b.fifthBits(32)), 31, true)
	b.end32()
}

func (b *blocks) q5_1() {
	b.dots(b.nibbles32(128, b.fifthBits(64)), 31, false)
	b.end32()
	b.minimum32()
}

// nibbles32 is the 8 vectors of codes of 4 bits at offset; more, if not nil, then changes those of vector i.
func (b *blocks) nibbles32(offset int, more func(i int)) (v []vector) {
	b.lane4(offset, "R10")
	b.activations()
	for i := range 8 {
		v = append(v, vector{func() {
			b.nibbles(i%4, i >= 4)
			if more != nil {
				more(i)
			}
		}, 4 * i})
	}
	return v
}

// fifthBits adds bit 4 to codes: bit i of each byte at offset belongs to vector i, see bitsOf32 in package kernels.
func (b *blocks) fifthBits(offset int) func(i int) {
	b.lane4(offset, "R11")
	return func(i int) {
		if i == 0 {
			b.ahead()
		}
		b.bits(b.vector("R11", 0), 4-i, "bit4")
	}
}

// end32 ends the products of a block, whose d lies first.
func (b *blocks) end32() {
	b.halves(0)
	b.addBlock("VFMADD231PS", x32Dx, b.acc)
}

// minimum32 adds m·Σx, given -Σx.
func (b *blocks) minimum32() {
	if b.stage.unpacking() {
		return
	}
	for r, acc := range b.acc {
		b.F("VPBROADCASTD %s, %s", b.x("DX", x32Neg, r), acc)
	}
	b.halves(32)
	b.addBlock("VFNMADD231PS", x32Dx, b.acc)
}

// q8_0 has signed codes.
func (b *blocks) q8_0() {
	b.lane4(32, "R10")
	b.activations()
	var v []vector
	for i := range 8 {
		v = append(v, vector{func() {
			b.ahead()
			from := fmt.Sprintf("%d(R10)", perTile*i)
			if b.VNNI {
				b.F("VPXORD %s, %s, %s", from, b.Const("bit7"), b.codes)
			} else {
				b.load(from, b.codes)
			}
		}, 4 * i})
	}
	b.signed32(v)
}

// signed32 is a block of signed codes, or, with VNNI, of codes that are 128 too large.
func (b *blocks) signed32(v []vector) {
	switch {
	case b.ARM:
		b.dots(v, 127, false)
	case b.VNNI:
		b.startAt("DX", x32Neg, 7)
		b.dots(v, 255, true)
	case b.stage == fused:
		b.signedDots(v)
	default:
		b.splitDots(v)
	}
	b.end32()
}
