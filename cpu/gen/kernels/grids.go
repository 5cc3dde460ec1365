package main

import "fmt"

// The formats of body_grid.go.

var gridIQ2_XXS = grid{
	points: "gridIQ2_XXS", codes: "levelsIQ2", numbers: 32, step: 2, factor: "eighth",
	begin: func(*blocks) {},
	sub: func(b *blocks) {
		b.evenSigns("64(R10)")
		b.scaleOfSigns("64(R10)")
	},
	sign:  slotSigns,
	scale: slotScale,
	next:  func(*blocks) {},
}

var gridIQ2_XS = grid{
	points: "gridIQ2_XS", codes: "levelsIQ2", numbers: 32, step: 2, factor: "eighth",
	begin: func(b *blocks) { b.pointer1(1056, "R13") },
	sub:   func(b *blocks) { b.evenSigns("64(R10)") },
	high:  func(b *blocks, k int) { b.field("64(R10)", 17+2*k, "bit8", b.t) },
	sign:  slotSigns,
	scale: func(b *blocks, part int) { b.nibbleScale(0, part) },
	next:  func(b *blocks) { b.advance(16, "R13") },
}

var gridIQ2_S = grid{
	points: "gridIQ2_S", codes: "levelsIQ2", numbers: 32, step: 1, factor: "eighth",
	begin: func(b *blocks) {
		b.lane4(544, "R11")
		b.pointer1(1056, "R13")
	},
	sub:   func(b *blocks) { b.ahead() },
	high:  func(b *blocks, k int) { b.highBits("VPMOVZXBD", 2*k-8, "bits89") },
	sign:  func(_ *blocks, v int) (string, int) { return "0(R11)", v },
	scale: func(b *blocks, part int) { b.nibbleScale(128, part) },
	next: func(b *blocks) {
		b.advance(64, "R11")
		b.advance(16, "R13")
	},
}

var gridIQ3_XXS = grid{
	points: "gridIQ3_XXS", four: true, codes: "levelsIQ3_XXS", numbers: 32, step: 2, factor: "quarter",
	begin: func(b *blocks) { b.lane4(1056, "R11") },
	sub: func(b *blocks) {
		b.ahead()
		b.evenSigns("0(R11)")
		b.scaleOfSigns("0(R11)")
	},
	sign:  slotSigns,
	scale: slotScale,
	next:  func(b *blocks) { b.advance(64, "R11") },
}

var gridIQ3_S = grid{
	points: "gridIQ3_S", four: true, codes: "levelsIQ3_S", numbers: 32, step: 2,
	begin: func(b *blocks) {
		if !b.stage.unpacked() {
			b.lane4(1696, "R11")
			b.load("0(R11)", b.codes)
			b.store(b.codes, b.slot(moreAt))
		}
		b.lane4(1184, "R11")
		b.pointer1(1056, "R13")
	},
	sub: func(b *blocks) {
		b.ahead()
		b.load(b.slot(moreAt), b.tmp)
		b.and(b.Const("nibble0"), b.tmp, b.codes)
		b.odd()
		b.store(b.codes, b.slot(scaleAt))
		b.F("VPSRLD $4, %s, %s", b.tmp, b.tmp)
		b.store(b.tmp, b.slot(moreAt))
	},
	high:  func(b *blocks, k int) { b.highBits("VPMOVZXBD", k-8, "bit8") },
	sign:  func(_ *blocks, v int) (string, int) { return "0(R11)", v },
	scale: slotScale,
	next: func(b *blocks) {
		b.advance(64, "R11")
		b.advance(16, "R13")
	},
}

// The signs of IQ1 are those of shifts, one for each number or each 32 values: the second byte of a word has them.
var gridIQ1_S = grid{
	points: "gridIQ1", codes: "levelsIQ1", numbers: 32, step: 1, factor: "eighth",
	begin: func(b *blocks) { b.pointer2(544, "R13") },
	sub: func(b *blocks) {
		b.shifts()
		b.field(b.tmp, 11, "bits13", b.codes) // twice the scale
		b.or(b.Const("int1"), b.codes, b.codes)
		b.store(b.codes, b.slot(scaleAt))
	},
	high:  func(b *blocks, k int) { b.highBits("VPMOVZXWD", 3*k-8, "bits8to10") },
	sign:  func(b *blocks, _ int) (string, int) { return b.slot(signsAt), 7 },
	scale: slotScale,
	next:  func(b *blocks) { b.advance(32, "R13") },
}

var gridIQ1_M = grid{
	points: "gridIQ1", codes: "levelsIQ1", numbers: 0, step: 1, d: 768, factor: "eighth",
	begin: func(b *blocks) {
		b.scalesIQ1_M()
		b.F("LEAQ %s, R11", b.slot(moreAt))
		b.pointer2(512, "R13")
	},
	sub:   (*blocks).shifts,
	high:  func(b *blocks, k int) { b.highBits("VPMOVZXWD", 3*k-8, "bits8to10") },
	sign:  func(b *blocks, v int) (string, int) { return b.slot(signsAt), 4 + v/2 },
	scale: func(b *blocks, part int) { b.load(fmt.Sprintf("%d(R11)", part*b.Width()), b.codes) },
	next: func(b *blocks) {
		b.advance(2*b.Width(), "R11")
		b.advance(32, "R13")
	},
}

// shifts puts the second byte of words at R13 four times into the slot of signs, and leaves the words in tmp.
func (b *blocks) shifts() {
	b.ahead()
	b.F("VPMOVZXWD 0(R13), %s", b.tmp)
	b.F("VPSHUFB %s, %s, %s", b.Const("second"), b.tmp, b.codes)
	b.store(b.codes, b.slot(signsAt))
}

// scalesIQ1_M puts 16 scales into the frame, see halfThenScales in package kernels.
func (b *blocks) scalesIQ1_M() {
	if b.stage.unpacked() {
		return
	}
	word, last := b.acc[0], b.isum[0]
	for i := range 3 {
		b.F("VPMOVZXWD %s, %s", b.lane2(768+32*(1+i)), word)
		for j := range 5 {
			b.field(word, 3*j-1, "bits13", b.codes)
			b.or(b.Const("int1"), b.codes, b.codes)
			b.store(b.codes, b.slot(moreAt+5*i+j))
		}
		b.F("VPSRLD $15, %s, %s", word, b.tmp)
		b.F("VPSLLD $%d, %s, %s", i+1, b.tmp, b.tmp)
		if i == 0 {
			b.or(b.Const("int1"), b.tmp, last)
		} else {
			b.or(b.tmp, last, last)
		}
	}
	b.store(last, b.slot(moreAt+15))
}
