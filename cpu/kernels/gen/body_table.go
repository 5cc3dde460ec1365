package main

import "fmt"

// Formats whose codes of 4 bits stand for the values of a table.

// tables are bytes that repeat every 16. Unsigned codes need values that are not negative: they have an excess.
var tables = []struct {
	name   string
	excess int
	values [16]int
}{
	{"nonlinear", 0, nonlinear},
	{"nonlinear128", 128, nonlinear},
	{"fp4Doubled16", 16, [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}},
}

var nonlinear = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// lookUp replaces codes by the values of a table.
func (b *blocks) lookUp(table string) {
	t, ok := b.regs[table]
	if !ok {
		t = b.tmp
		b.load(table+"<>(SB)", t)
	}
	b.f("VPSHUFB %s, %s, %s", b.codes, t, b.codes)
}

// nonlinear looks up signed values, with VNNI 128 too large.
func (b *blocks) nonlinear() {
	if b.vnni {
		b.lookUp("nonlinear128")
	} else {
		b.lookUp("nonlinear")
	}
}

func (b *blocks) iq4_NL() {
	b.signed32(b.nibbles32(32, func(int) { b.nonlinear() }))
}

func (b *blocks) mxfp4() {
	b.startAt("DX", x32Neg, 4) // codes are 16 too large
	b.dots(b.nibbles32(16, func(int) { b.lookUp("fp4Doubled16") }), 28, true)
	b.exponents()
	b.addBlock("VFMADD231PS", x32Dx, b.acc)
}

// exponents loads what addBlock multiplies: 2^(e-128) has the bits (e-1)<<23, but below e = 2, where it is subnormal,
// (e+1)<<21. The larger one is right.
func (b *blocks) exponents() {
	if b.stage == expand {
		return
	}
	b.f("VPMOVZXBD %s, %s", b.lane1(0), b.codes)
	b.f("VPSLLD $23, %s, %s", b.codes, b.tmp)
	b.f("VPSUBD %s, %s, %s", b.c("bit23"), b.tmp, b.tmp)
	b.f("VPSLLD $21, %s, %s", b.codes, b.codes)
	b.f("VPADDD %s, %s, %s", b.c("bit21"), b.codes, b.codes)
	b.f("VPMAXSD %s, %s, %s", b.codes, b.tmp, b.tmp)
}

func (b *blocks) iq4_XS() {
	b.scalesXS()
	for _, s := range b.isum {
		b.zero(s)
	}
	b.lane4(128, "R10")
	b.f("MOVQ DX, DI")
	b.f("LEAQ %d(DX), CX", xSums)
	b.f("LEAQ 0(SP), R13")
	b.loop("pair", 4, func() {
		for s := range 2 {
			var v []vector
			for i := range 8 {
				v = append(v, vector{func() {
					b.nibbles(4*s+i%4, i >= 4)
					b.nonlinear()
				}, 32*s + 4*i})
			}
			if b.vnni {
				b.startLess128(s)
				b.dots(v, 255, true)
			} else {
				b.signedDots(v)
			}
			b.scaled(fmt.Sprintf("%d(R13)", s*b.width()))
		}
		b.f("ADDQ $%d, R10", 8*perTile)
		b.f("ADDQ $64, DI")
		b.f("ADDQ $4, CX")
		b.f("ADDQ $%d, R13", 2*b.width())
	})
	b.halves(0)
	b.addBlock("VFMADD231PS", xScale, b.isum)
}

// startLess128 sets acc to -128·Σx of 32, the first or second of two int16 at CX.
func (b *blocks) startLess128(which int) {
	if b.stage == expand {
		return
	}
	for r, acc := range b.acc {
		b.zero(acc)
		b.f("VPDPWSSD.BCST %s, %s, %s", b.x("CX", 0, r), b.c([...]string{"less128x0", "less128x1"}[which]), acc)
	}
}

// scalesXS puts the scales into the frame: sub-block s has nibble s of a word and bits 2s of a half word.
func (b *blocks) scalesXS() {
	if b.stage == multiply {
		return
	}
	low, high := b.acc[0], b.isum[0]
	b.lane4(64, "R10")
	b.ahead(0, "BX")
	b.ahead(0, "R10")
	b.load("0(R10)", low)
	b.f("VPMOVZXWD %s, %s", b.lane2(32), high)
	b.f("VPSLLD $4, %s, %s", high, high)
	for s := range 8 {
		b.f("VPSRLD $%d, %s, %s", 4*s, low, b.codes)
		b.and(b.c("nibble0"), b.codes, b.codes)
		b.f("VPSRLD $%d, %s, %s", 2*s, high, b.tmp)
		b.and(b.c("bits45of0"), b.tmp, b.tmp)
		b.or(b.tmp, b.codes, b.codes)
		b.f("VPSUBD %s, %s, %s", b.c("int32"), b.codes, b.codes)
		b.store(b.codes, b.slot(s))
	}
}
