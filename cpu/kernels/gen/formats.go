package main

import "fmt"

// Places in tiles are those of layout.go. Chunks: 8·2·127·15, 4·2·127·31 and 2·2·127·63 are below 2¹⁵.

func (b *blocks) q4_K() {
	b.kBlock(256, func() {}, func(i int, high bool) {
		b.nibbles(i, high)
	}, 8)
}

func (b *blocks) q5_K() {
	bits := func() { // a copy of bit 4 of all codes, which moves down by two bits for each pair of sub-blocks
		b.lane4(256, "R10")
		for i := range 8 {
			b.ahead(perTile*i, "R10")
			b.load(fmt.Sprintf("%d(R10)", perTile*i), b.tmp)
			b.store(b.tmp, b.slot(bitsAt+i))
		}
	}
	b.kBlock(768, bits, func(i int, high bool) {
		b.nibbles(i, high)
		b.load(b.slot(bitsAt+i), b.tmp)
		if high {
			b.f("VPSLLD $3, %s, %s", b.tmp, b.t)
			b.f("VPSRLD $2, %s, %s", b.tmp, b.tmp)
			b.store(b.tmp, b.slot(bitsAt+i))
			b.merge(b.t, "bit4")
		} else {
			b.f("VPSLLD $4, %s, %s", b.tmp, b.tmp)
			b.merge(b.tmp, "bit4")
		}
	}, 4)
}

// nibbles puts half of the bytes of vector i at R10 into codes.
func (b *blocks) nibbles(i int, high bool) {
	from := fmt.Sprintf("%d(R10)", perTile*i)
	if !high {
		b.ahead(perTile*i, "R10")
		b.and(from, b.c("low4"), b.codes)
		return
	}
	if b.wide() {
		b.f("VPSRLD $4, %s, %s", from, b.codes)
	} else {
		b.load(from, b.codes)
		b.f("VPSRLD $4, %s, %s", b.codes, b.codes)
	}
	b.and(b.c("low4"), b.codes, b.codes)
}

// merge sets those bits of codes that are set in v and in the constant; v is destroyed.
func (b *blocks) merge(v, constant string) {
	if b.wide() {
		b.f("VPTERNLOGD $0xf8, %s, %s, %s", b.c(constant), v, b.codes) // codes | v&constant
		return
	}
	b.and(b.c(constant), v, v)
	b.or(v, b.codes, b.codes)
}

// kBlock is Q4_K and Q5_K: four pairs of sub-blocks, each a low and a high nibble of 8 vectors.
func (b *blocks) kBlock(codesAt int, prepare func(), codes func(i int, high bool), chunk int) {
	b.unpackScales()
	prepare()
	for _, s := range b.isum {
		b.zero(s)
	}
	b.lane4(codesAt, "R10")
	b.f("MOVQ DX, DI")
	b.f("LEAQ 0(SP), R13")
	b.f("MOVL $4, AX")
	b.f("pair:")
	for s, high := range []bool{false, true} {
		var v []vector
		for i := range 8 {
			v = append(v, vector{func() { codes(i, high) }, 32*s + 4*i})
		}
		b.dots(v, chunk, false)
		b.scaled(fmt.Sprintf("%d(R13)", s*b.width()))
	}
	b.f("ADDQ $%d, R10", 8*perTile)
	b.f("ADDQ $64, DI")
	b.f("ADDQ $%d, R13", 2*b.width())
	b.f("DECL AX")
	b.f("JNZ pair")
	b.addBlock("VFMADD231PS", 0, xScale, b.isum)
	b.f("// minima")
	for r, acc := range b.acc {
		if b.vnni {
			b.zero(acc)
		}
		for p := range 4 {
			sums := b.x("DX", xSums+4*p, r)
			switch {
			case b.vnni:
				b.load(b.slot(minsAt+p), b.codes)
				b.f("VPDPWSSD.BCST %s, %s, %s", sums, b.codes, acc)
			case p == 0:
				b.f("VPBROADCASTD %s, %s", sums, b.t)
				b.f("VPMADDWD %s, %s, %s", b.slot(minsAt), b.t, acc)
			default:
				b.f("VPBROADCASTD %s, %s", sums, b.t)
				b.f("VPMADDWD %s, %s, %s", b.slot(minsAt+p), b.t, b.t)
				b.f("VPADDD %s, %s, %s", b.t, acc, acc)
			}
		}
	}
	b.addBlock("VFNMADD231PS", 32, xScale, b.acc)
}

func (b *blocks) q6_K() {
	for _, s := range b.isum {
		b.zero(s)
	}
	b.lane4(0, "R10")
	b.lane4(2048, "R11")
	b.f("LEAQ 3072(BX), R13")
	if !b.wide() {
		b.f("LEAQ (R13)(SI*4), R13")
	}
	b.f("MOVQ DX, DI")
	b.f("LEAQ %d(DX), CX", xNeg)
	b.f("MOVL $2, AX")
	b.f("half128:")
	for run := range 4 { // of 32 codes: low nibbles of runs 0 and 1, then high ones
		for part := range 2 {
			b.startAt("CX", 8*run+4*part, 5) // codes are 32 too large
			var v []vector
			for i := 4 * part; i < 4*part+4; i++ {
				v = append(v, vector{func() { b.sixBits(run, i) }, 32*run + 4*i})
			}
			b.dots(v, 2, true)
			if run%2+part == 0 {
				b.ahead(32*run, "R13")
			}
			b.f("VPMOVSXBD %d(R13), %s", 16*(2*run+part), b.codes)
			b.scaled(b.codes)
		}
	}
	b.f("ADDQ $%d, R10", 16*perTile)
	b.f("ADDQ $%d, R11", 8*perTile)
	b.f("ADDQ $128, R13")
	b.f("ADDQ $128, DI")
	b.f("ADDQ $32, CX")
	b.f("DECL AX")
	b.f("JNZ half128")
	b.addBlock("VFMADD231PS", 3328, xScale, b.isum)
}

// sixBits joins the nibbles of a run with bits 2·run of R11.
func (b *blocks) sixBits(run, i int) {
	b.nibbles(8*(run%2)+i, run >= 2)
	from, shift := fmt.Sprintf("%d(R11)", perTile*i), [...]int{4, 2, 0, -2}[run]
	if run == 0 {
		b.ahead(perTile*i, "R11")
	}
	if shift == 0 && b.wide() {
		b.load(from, b.tmp)
	} else if b.wide() {
		b.f("%s $%d, %s, %s", shiftName(shift), max(shift, -shift), from, b.tmp)
	} else {
		b.load(from, b.tmp)
		if shift != 0 {
			b.f("%s $%d, %s, %s", shiftName(shift), max(shift, -shift), b.tmp, b.tmp)
		}
	}
	b.merge(b.tmp, "bits45")
}

func shiftName(n int) string {
	if n < 0 {
		return "VPSRLD"
	}
	return "VPSLLD"
}

func (b *blocks) q4_0() {
	b.lane4(32, "R10")
	b.startAt("DX", x32Neg, 3) // codes are 8 too large
	b.f("MOVQ DX, DI")
	var v []vector
	for i := range 8 {
		v = append(v, vector{func() { b.nibbles(i%4, i >= 4) }, 4 * i})
	}
	b.dots(v, 8, true)
	b.addBlock("VFMADD231PS", 0, x32Dx, b.acc)
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
		b.dots(v, 8, true)
	} else {
		for i := range 8 {
			b.signedDots(i)
		}
	}
	b.addBlock("VFMADD231PS", 0, x32Dx, b.acc)
}

func (b *blocks) signedDots(i int) {
	b.ahead(perTile*i, "R10")
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
