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
	b.f("MOVQ DX, DI")
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
			b.ahead(0, "R11")
		}
		b.bits("0(R11)", 4-i, "bit4")
	}
}

// end32 ends the products of a block, whose d lies first.
func (b *blocks) end32() {
	b.halves(0)
	b.addBlock("VFMADD231PS", x32Dx, b.acc)
}

// minimum32 adds m·Σx, given -Σx.
func (b *blocks) minimum32() {
	if b.stage == expand {
		return
	}
	for r, acc := range b.acc {
		b.f("VPBROADCASTD %s, %s", b.x("DX", x32Neg, r), acc)
	}
	b.halves(32)
	b.addBlock("VFNMADD231PS", x32Dx, b.acc)
}

// q8_0 multiplies signed codes. VNNI: w + 128 is unsigned, its excess is taken away beforehand. Without: |w| times
// x with the sign of w, and 2·128·127 < 2¹⁵.
func (b *blocks) q8_0() {
	b.lane4(32, "R10")
	b.f("MOVQ DX, DI")
	if b.vnni {
		b.startAt("DX", x32Neg, 7)
		var v []vector
		for i := range 8 {
			v = append(v, vector{func() {
				b.ahead(perTile*i, "R10")
				b.f("VPXORD %d(R10), %s, %s", perTile*i, b.c("bit7"), b.codes)
			}, 4 * i})
		}
		b.dots(v, 255, true)
	} else {
		for i := range 8 {
			b.signedDots(i)
		}
	}
	b.end32()
}

func (b *blocks) signedDots(i int) {
	b.ahead(perTile*i, "R10")
	if b.stage == expand {
		return
	}
	b.load(fmt.Sprintf("%d(R10)", perTile*i), b.tmp)
	b.f("VPABSB %s, %s", b.tmp, b.codes)
	if b.wide() {
		b.f("VPMOVB2M %s, K2", b.tmp)
		b.zero(b.tmp)
	}
	for r, p := range b.pairs {
		b.f("VPBROADCASTD %s, %s", b.x("DI", 4*i, r), p)
		if b.wide() {
			b.f("VPSUBB %s, %s, K2, %s", p, b.tmp, p)
		} else {
			b.f("VPSIGNB %s, %s, %s", b.tmp, p, p)
		}
		b.f("VPMADDUBSW %s, %s, %s", p, b.codes, p)
	}
	b.widen(b.pairs, i > 0)
}
