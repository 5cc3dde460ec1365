package main

import (
	"fmt"
	"math/bits"
	"slices"
)

// Formats whose codes of 4 bits stand for the values of a table.

// table is 16 bytes: values, and an excess that makes them unsigned.
type table struct {
	name   string
	excess int
	values [16]int
}

// tables repeat throughout a vector; levels are those of grids, see body_grid.go.
var tables = []table{
	{"nonlinear", 0, nonlinear},
	{"nonlinear128", 128, nonlinear},
	{"fp4Doubled", 0, fp4Doubled},
	{"fp4Doubled16", 16, fp4Doubled},
	{"levelsIQ1", 16, [16]int{-7, 1, 9, 8: -9, -1, 7}},
	{"levelsIQ2", 64, [16]int{8, 25, 43, 8: -8, -25, -43}},
	{"levelsIQ3_XXS", 64, [16]int{4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62}},
	{"levelsIQ3_S", 16, [16]int{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15}},
	{"second", 0, [16]int{1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13}}, // byte of each word, for VPSHUFB
}

var (
	nonlinear  = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	fp4Doubled = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

// words are the first bytes of a vector.
func (t *table) words(bytes int) []uint64 {
	words := make([]uint64, bytes/8)
	for i := range bytes {
		words[i/8] |= uint64(byte(t.values[i%16]+t.excess)) << (i % 8 * 8)
	}
	return words
}

// tableRange says which power of two a table's excess is, and how large its codes are.
func tableRange(name string) (shift, most int) {
	i := slices.IndexFunc(tables, func(t table) bool { return t.name == name })
	t := &tables[i]
	return bits.TrailingZeros(uint(t.excess)), slices.Max(t.values[:]) + t.excess
}

// lookUp replaces codes by the values of a table.
func (b *blocks) lookUp(table string) {
	t, ok := b.Held(table)
	if !ok {
		t = b.tmp
		b.load(table+"<>(SB)", t)
	}
	b.F("VPSHUFB %s, %s, %s", b.codes, t, b.codes)
}

// nonlinear looks up signed values, with VNNI 128 too large.
func (b *blocks) nonlinear() {
	if b.VNNI {
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
	_, most := tableRange("fp4Doubled16")
	b.dots(b.nibbles32(16, func(int) { b.lookUp("fp4Doubled16") }), most, true)
	b.exponents()
	b.addBlock("VFMADD231PS", x32Dx, b.acc)
}

// exponents loads what addBlock multiplies: 2^(e-128) has the bits (e-1)<<23, but below e = 2, where it is subnormal,
// (e+1)<<21. The larger one is right.
func (b *blocks) exponents() {
	if b.stage.unpacking() {
		return
	}
	b.F("VPMOVZXBD %s, %s", b.lane1(0), b.codes)
	b.F("VPSLLD $23, %s, %s", b.codes, b.tmp)
	b.F("VPSUBD %s, %s, %s", b.Const("bit23"), b.tmp, b.tmp)
	b.F("VPSLLD $21, %s, %s", b.codes, b.codes)
	b.F("VPADDD %s, %s, %s", b.Const("bit21"), b.codes, b.codes)
	b.F("VPMAXSD %s, %s, %s", b.codes, b.tmp, b.tmp)
}

// nvfp4 is four sub-blocks of 16, each with a scale that is no integer: as if they were blocks.
func (b *blocks) nvfp4() {
	b.lane4(64, "R10")
	b.activations()
	b.pointer1(0, "R13")
	b.each("block32", 2, func(block int) {
		for s := 2 * block; s < 2*block+2; s++ {
			b.nvfp4Sub(s)
		}
	}, func() {
		b.advance(32, "R13")
		b.nextBlock32(4)
	})
	b.firstBlock32(2)
}

func (b *blocks) nvfp4Sub(s int) {
	var v []vector
	for i := range 4 {
		v = append(v, vector{func() {
			b.nibbles(2*s+i%2, i >= 2)
			if b.VNNI {
				b.lookUp("fp4Doubled16")
			} else {
				b.lookUp("fp4Doubled")
			}
		}, x32*(s/2) + 16*(s%2) + 4*i})
	}
	if b.VNNI {
		b.startLess16(v)
		b.dots(v, 28, true)
	} else {
		b.signedDots(v)
	}
	b.scaleE4M3(16 * s)
	b.addBlock("VFMADD231PS", x32*(s/2)+x32Dx, b.acc)
}

// startLess16 sets acc to -16·Σx of the vectors' x: activations have no sum of 16 in this form.
func (b *blocks) startLess16(vectors []vector) {
	if b.stage == expand {
		return
	}
	for r, acc := range b.acc {
		b.zero(b.t)
		for _, v := range vectors {
			b.F("VPDPBUSD.BCST %s, %s, %s", b.x("DI", v.x, r), b.Const("bytes16"), b.t)
		}
		b.zero(acc)
		b.F("VPSUBD %s, %s, %s", b.t, acc, acc)
	}
}

// scaleE4M3 loads what addBlock multiplies: with e the exponent and m the mantissa, (8+m)·2^(e-1) of 2^-10, or m where
// e is 0, as an integer, since subnormal floats are slow.
func (b *blocks) scaleE4M3(offset int) {
	if b.stage == expand {
		return
	}
	b.F("VPMOVZXBD %d(R13), %s", offset, b.codes)
	b.load("e4m3<>(SB)", b.t)
	b.and(b.t, b.codes, b.tmp)
	if b.Wide() {
		b.F("VPCMPD $4, %s, %s, K2", b.t, b.codes) // 0x7f is 0
		b.F("VMOVDQU32.Z %s, K2, %s", b.tmp, b.tmp)
	} else {
		b.F("VPCMPEQD %s, %s, %s", b.t, b.codes, b.t)
		b.F("VPANDN %s, %s, %s", b.tmp, b.t, b.tmp)
	}
	b.F("VPSRLD $3, %s, %s", b.tmp, b.codes) // e
	b.F("VPSLLD $3, %s, %s", b.codes, b.t)
	b.F("VPSUBD %s, %s, %s", b.t, b.tmp, b.tmp) // m
	b.load("int1<>(SB)", b.t)
	b.F("VPMINUD %s, %s, %s", b.codes, b.t, b.t)
	b.F("VPSUBD %s, %s, %s", b.t, b.codes, b.codes)
	b.F("VPSLLD $3, %s, %s", b.t, b.t)
	b.F("VPADDD %s, %s, %s", b.t, b.tmp, b.tmp)
	b.F("VPSLLVD %s, %s, %s", b.codes, b.tmp, b.tmp)
	b.F("VCVTDQ2PS %s, %s", b.tmp, b.tmp)
	b.F("VMULPS %s, %s, %s", b.Const("float2m10"), b.tmp, b.tmp)
}

func (b *blocks) iq4_XS() {
	b.scalesXS()
	b.clear()
	b.lane4(128, "R10")
	b.activations()
	b.F("LEAQ %d(DX), CX", xSums)
	b.F("LEAQ 0(SP), R13")
	b.loop("pair", 4, func() {
		for s := range 2 {
			var v []vector
			for i := range 8 {
				v = append(v, vector{func() {
					b.nibbles(4*s+i%4, i >= 4)
					b.nonlinear()
				}, 32*s + 4*i})
			}
			if b.VNNI {
				b.startLess128(s)
				b.dots(v, 255, true)
			} else {
				b.signedDots(v)
			}
			b.scaled(fmt.Sprintf("%d(R13)", s*b.Width()))
		}
		b.F("ADDQ $%d, R10", 8*perTile)
		b.nextActivations(64)
		b.F("ADDQ $4, CX")
		b.F("ADDQ $%d, R13", 2*b.Width())
	})
	b.halves(0)
	b.addBlock("VFMADD231PS", xScale, b.isum)
}

// startLess128 sets acc to -128·Σx of 32, the first or second of two int16 at CX.
func (b *blocks) startLess128(which int) {
	b.excess = 128
	if b.stage.unpacking() {
		return
	}
	for r, acc := range b.acc {
		b.zero(acc)
		b.F("VPDPWSSD.BCST %s, %s, %s", b.x("CX", 0, r), b.Const([...]string{"less128x0", "less128x1"}[which]), acc)
	}
}

// scalesXS puts the scales into the frame: sub-block s has nibble s of a word and bits 2s of a half word.
func (b *blocks) scalesXS() {
	if b.stage.unpacked() {
		return
	}
	low, high := b.acc[0], b.isum[0]
	b.lane4(64, "R10")
	b.ahead()
	b.ahead()
	b.load("0(R10)", low)
	b.F("VPMOVZXWD %s, %s", b.lane2(32), high)
	b.F("VPSLLD $4, %s, %s", high, high)
	for s := range 8 {
		b.F("VPSRLD $%d, %s, %s", 4*s, low, b.codes)
		b.and(b.Const("nibble0"), b.codes, b.codes)
		b.F("VPSRLD $%d, %s, %s", 2*s, high, b.tmp)
		b.and(b.Const("bits45of0"), b.tmp, b.tmp)
		b.or(b.tmp, b.codes, b.codes)
		b.F("VPSUBD %s, %s, %s", b.Const("int32"), b.codes, b.codes)
		b.store(b.codes, b.slot(s))
	}
}
