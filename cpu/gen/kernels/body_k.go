package main

import "fmt"

// Formats of 256 with scales of 16 or 32. Places in tiles are those of package kernels, formats.go.

// Slots of Q4_K and Q5_K: 8 scales, 4 times minima as pairs of int16, 8 vectors of bits.
const minsAt, bitsAt = 8, 12

// q2_K: the sum of a sub-block is at most 16·3·127, an int16.
func (b *blocks) q2_K() {
	b.F("LEAQ %s, R13", b.lane1(0))
	b.sixteens(runs{codes: 256, vectors: 8, scales: 128}, b.twoBits, func(run, part int, v []vector) {
		b.shortDots(v, 3, func() {
			b.scaleAt(run, part, "VPMOVZXBD")
			b.and(b.Const("low4"), b.codes, b.codes)
		})
	})
	b.halves(1280)
	b.addBlock("VFMADD231PS", xScale, b.isum)
	b.minimaOf16()
	b.halves(1312)
	b.addBlock("VFMADD231PS", xScale, b.acc)
}

// minimaOf16 sets acc to the sum over sub-blocks of minimum times -Σx, whose low half is an int16.
func (b *blocks) minimaOf16() {
	if b.stage == planes {
		return
	}
	if !b.stage.unpacking() {
		b.F("// minima")
		for _, acc := range b.acc {
			b.zero(acc)
		}
	}
	const together = 4
	b.pointer1(0, "R13")
	b.F("LEAQ %d(DX), CX", xNeg)
	b.repeat("minima", 16/together, func() {
		for s := range together {
			b.minimumOf16(s)
		}
		b.advance(16*together, "R13")
		b.advance(4*together, "CX")
	})
}

func (b *blocks) minimumOf16(s int) {
	b.unpacked(b.codes, func() {
		b.F("VPMOVZXBD %d(R13), %s", 16*s, b.codes)
		b.F("VPSRLD $4, %s, %s", b.codes, b.codes)
	})
	if b.stage.unpacking() {
		return
	}
	for r, acc := range b.acc {
		x := b.x("CX", 4*s, r)
		if b.VNNI {
			b.F("VPDPWSSD.BCST %s, %s, %s", x, b.codes, acc)
			continue
		}
		b.F("VPBROADCASTD %s, %s", x, b.t)
		b.F("VPMADDWD %s, %s, %s", b.codes, b.t, b.t)
		b.F("VPADDD %s, %s, %s", b.t, acc, acc)
	}
}

// q3_K: bytes with bit 2 of both parts of a run have those of a half of 128 in 4 vectors.
func (b *blocks) q3_K() {
	b.scalesQ3()
	b.F("LEAQ 0(SP), R13")
	b.lane4(0, "R11")
	codes := func(run, i int) {
		b.twoBits(run, i)
		if run == 0 && i < 4 {
			b.ahead()
		}
		b.bits(b.vector("R11", perTile*(i%4)), 2-run-i/4*4, "bit2")
	}
	b.sixteens(runs{codes: 512, vectors: 8, bits: 4, scales: 2 * b.Width()}, codes, func(run, part int, v []vector) {
		b.offsetDots(v, 7, 0, "CX", 8*run+4*part, 2, func() { // codes are 4 too large
			b.load(fmt.Sprintf("%d(R13)", run/2*b.Width()), b.codes)
			if at := 2*(run%2) + part; at < 3 {
				b.F("VPSLLD $%d, %s, %s", 24-8*at, b.codes, b.codes)
			}
			b.F("VPSRAD $24, %s, %s", b.codes, b.codes)
		})
	})
	b.halves(1728)
	b.addBlock("VFMADD231PS", xScale, b.isum)
}

// scalesQ3 puts the bytes of the scales of 4 sub-blocks each into the frame.
func (b *blocks) scalesQ3() {
	if b.stage.unpacked() {
		return
	}
	high := b.isum[0]
	b.lane4(1536, "R10")
	for range 3 {
		b.ahead()
	}
	b.load("128(R10)", high)
	for group := range 4 {
		b.cut(64*(group%2), group/2*4, "low4")
		if group < 2 {
			b.F("VPSLLD $%d, %s, %s", 4-2*group, high, b.tmp)
		} else {
			b.F("VPSRLD $%d, %s, %s", 2*group-4, high, b.tmp)
		}
		b.merge(b.tmp, "bits45")
		b.F("VPSUBB %s, %s, %s", b.Const("bytes32"), b.codes, b.codes)
		b.store(b.codes, b.slot(group))
	}
}

// runs is how a half of 128 lies in a tile: four runs of 32 codes.
type runs struct {
	codes         int // offset of the first
	vectors, bits int // of codes at R10, of what more they have at R11
	scales        int // bytes at R13
}

// sixteens visits the sub-blocks of 16, with their 4 vectors of codes. CX leads to -Σx of the half.
func (b *blocks) sixteens(h runs, codes func(run, i int), visit func(run, part int, v []vector)) {
	b.clear()
	b.lane4(h.codes, "R10")
	b.activations()
	b.F("LEAQ %d(DX), CX", xNeg)
	if b.stage == multiply { // sub-blocks lie in order, and are alike
		b.loop("two", 8, func() { // one at a time is up to 4 % slower
			for part := range 2 {
				visit(0, part, []vector{{x: 16 * part}, {x: 16*part + 4}, {x: 16*part + 8}, {x: 16*part + 12}})
			}
			b.nextActivations(32)
			b.F("ADDQ $8, CX")
		})
		return
	}
	b.loop("half128", 2, func() {
		release := b.hold()
		for n := range 8 {
			run, part := n%4, n/4 // all runs of a part use its vectors
			if b.stage.unpacking() {
				run, part = n/2, n%2 // as their activations
			}
			if n == 4 {
				release()
				release = b.hold()
			}
			var v []vector
			for i := 4 * part; i < 4*part+4; i++ {
				v = append(v, vector{func() { codes(run, i) }, 32*run + 4*i})
			}
			visit(run, part, v)
		}
		release()
		b.F("ADDQ $%d, R10", h.vectors*perTile)
		if h.bits > 0 {
			b.F("ADDQ $%d, R11", h.bits*perTile)
		}
		b.F("ADDQ $%d, R13", h.scales)
		b.nextActivations(128)
		b.F("ADDQ $32, CX")
	})
}

// scaleAt widens the bytes of a sub-block's scales at R13.
func (b *blocks) scaleAt(run, part int, widen string) {
	if run%2+part == 0 {
		b.ahead()
	}
	b.F("%s %d(R13), %s", widen, 16*(2*run+part), b.codes)
}

// q4_K leaves high nibbles where they are, where that is cheaper: one shift of their sums instead of four of codes.
func (b *blocks) q4_K() {
	raised := 0
	if b.VNNI && b.stage == fused && b.rows == 1 {
		raised = 4
	}
	b.kBlock(256, func() {}, func(i int, high bool) {
		if high && raised > 0 {
			b.cut(perTile*i, 0, "high4")
			return
		}
		b.nibbles(i, high)
	}, 15, raised)
}

func (b *blocks) q5_K() {
	bits := func() { // a copy of bit 4 of all codes, which moves down by two bits for each pair of sub-blocks
		b.lane4(256, "R10")
		for i := range 8 {
			b.ahead()
			b.load(fmt.Sprintf("%d(R10)", perTile*i), b.tmp)
			b.store(b.tmp, b.slot(bitsAt+i))
		}
	}
	b.kBlock(768, bits, func(i int, high bool) {
		b.nibbles(i, high)
		b.load(b.slot(bitsAt+i), b.tmp)
		if high {
			b.F("VPSLLD $3, %s, %s", b.tmp, b.t)
			b.F("VPSRLD $2, %s, %s", b.tmp, b.tmp)
			b.store(b.tmp, b.slot(bitsAt+i))
			b.merge(b.t, "bit4")
		} else {
			b.F("VPSLLD $4, %s, %s", b.tmp, b.tmp)
			b.merge(b.tmp, "bit4")
		}
	}, 31, 0)
}

// kBlock is Q4_K and Q5_K: four pairs of sub-blocks, each a low and a high nibble of 8 vectors. The codes of high ones are
// shifted to the left by so many bits.
func (b *blocks) kBlock(codesAt int, prepare func(), codes func(i int, high bool), most, raised int) {
	if !b.stage.unpacked() {
		b.unpackScales()
		prepare()
	}
	b.clear()
	b.lane4(codesAt, "R10")
	b.activations()
	b.F("LEAQ 0(SP), R13")
	if b.stage == multiply { // codes of both halves lie alike
		b.loop("sub", 8, func() {
			var v []vector
			for i := range 8 {
				v = append(v, vector{x: 4 * i})
			}
			b.scaledDots(v, most, 0, "0(R13)")
			b.nextActivations(32)
			b.F("ADDQ $%d, R13", b.Width())
		})
		b.endK()
		return
	}
	b.loop("pair", 4, func() {
		for s, high := range []bool{false, true} {
			var v []vector
			for i := range 8 {
				v = append(v, vector{func() { codes(i, high) }, 32*s + 4*i})
			}
			b.scaledDots(v, most, s*raised, fmt.Sprintf("%d(R13)", s*b.Width()))
		}
		b.F("ADDQ $%d, R10", 8*perTile)
		b.nextActivations(64)
		b.F("ADDQ $%d, R13", 2*b.Width())
	})
	b.endK()
}

// endK adds the sums of a block, and of its minima.
func (b *blocks) endK() {
	b.halves(0)
	b.addBlock("VFMADD231PS", xScale, b.isum)
	b.minima()
	b.halves(32)
	b.addBlock("VFNMADD231PS", xScale, b.acc)
}

// minima sets acc to the sum over sub-blocks of minimum times Σx.
func (b *blocks) minima() {
	if b.stage.unpacking() {
		return
	}
	b.F("// minima")
	for p := range 4 {
		if b.VNNI {
			b.load(b.slot(minsAt+p), b.codes)
		}
		for r, acc := range b.acc {
			sums := b.x("DX", xSums+4*p, r)
			if p == 0 && b.VNNI {
				b.zero(acc)
			}
			switch {
			case b.VNNI:
				b.F("VPDPWSSD.BCST %s, %s, %s", sums, b.codes, acc)
			case p == 0:
				b.F("VPBROADCASTD %s, %s", sums, b.t)
				b.F("VPMADDWD %s, %s, %s", b.slot(minsAt), b.t, acc)
			default:
				b.F("VPBROADCASTD %s, %s", sums, b.t)
				b.F("VPMADDWD %s, %s, %s", b.slot(minsAt+p), b.t, b.t)
				b.F("VPADDD %s, %s, %s", b.t, acc, acc)
			}
		}
	}
}

// q6_K leaves the codes that are in the top bits of others as they are there, where that is cheaper: four times too
// large.
func (b *blocks) q6_K() {
	raised := 0
	if b.VNNI && b.stage == fused && b.rows == 1 {
		raised = 2
	}
	b.lane4(2048, "R11")
	b.F("LEAQ %s, R13", b.lane1(3072))
	codes := func(run, i int) { b.sixBits(run, i, raised) }
	b.sixteens(runs{codes: 0, vectors: 16, bits: 8, scales: 128}, codes, func(run, part int, v []vector) {
		b.offsetDots(v, 63, run/3*raised, "CX", 8*run+4*part, 5, func() { // codes are 32 too large
			b.scaleAt(run, part, "VPMOVSXBD")
		})
	})
	b.halves(3328)
	b.addBlock("VFMADD231PS", xScale, b.isum)
}

// sixBits puts codes of a run into codes: three runs lie in the low bits of bytes, the fourth in the top bits of the other
// three, see fourthCodes in package kernels.
func (b *blocks) sixBits(run, i, raised int) {
	if run < 3 {
		b.ahead()
	}
	three := [...]string{b.vector("R10", perTile*i), b.vector("R10", perTile*(8+i)), b.vector("R11", perTile*i)}
	if run < 3 {
		b.field(three[run], 0, "low6", b.codes)
		return
	}
	pairs := []string{"low2", "bits23", "bits45", "bits67"}[raised/2:]
	b.field(three[2], 6-raised, pairs[0], b.codes)
	b.bits(three[1], raised-4, pairs[1])
	b.bits(three[0], raised-2, pairs[2])
}

// unpackScales puts scales and minima of Q4_K and Q5_K into the frame; see packScales in package kernels.
func (b *blocks) unpackScales() {
	b.F("// scales and minima, 6 bits each")
	high, word, v := b.codes, b.acc[0], b.isum[0]
	b.lane4(64, "R10")
	for range 4 {
		b.ahead()
	}
	b.load("128(R10)", high)
	first := func(shift string, n int, to int) { // low nibbles of the word, high bits shifted
		b.and(b.Const("low4"), word, v)
		if n != 0 {
			b.F("%s $%d, %s, %s", shift, n, high, b.tmp)
			b.and(b.Const("bits45"), b.tmp, b.tmp)
		} else {
			b.and(b.Const("bits45"), high, b.tmp)
		}
		b.or(b.tmp, v, v)
		if to < minsAt {
			b.spreadScales(v, to)
		} else {
			b.spreadMins(v, to)
		}
	}
	b.load("0(R10)", word)
	first("VPSLLD", 4, 0)
	b.F("VPSRLD $4, %s, %s", word, word)
	first("VPSLLD", 2, 1)
	b.load("64(R10)", word)
	first("VPSLLD", 0, minsAt)
	b.F("VPSRLD $4, %s, %s", word, word)
	first("VPSRLD", 2, minsAt+2)
}

// spreadScales widens the bytes of v to scales of sub-blocks first, first+2, …: int32, or twice as int16.
func (b *blocks) spreadScales(v string, first int) {
	for j := range 4 {
		to := b.tmp
		switch j {
		case 0:
			b.and(b.Const("byte0"), v, to)
		case 3:
			b.F("VPSRLD $24, %s, %s", v, to)
		default:
			b.F("VPSRLD $%d, %s, %s", 8*j, v, to)
			b.and(b.Const("byte0"), to, to)
		}
		if !b.Direct() {
			b.F("VPSLLD $16, %s, %s", to, b.t)
			b.or(b.t, to, to)
		}
		b.store(to, b.slot(first+2*j))
	}
}

// spreadMins widens the bytes of v to two pairs of int16.
func (b *blocks) spreadMins(v string, to int) {
	b.and(b.Const("even"), v, b.tmp)
	b.store(b.tmp, b.slot(to))
	b.F("VPSRLW $8, %s, %s", v, v)
	b.store(v, b.slot(to+1))
}
