package main

import "strings"

// Products of codes and activations, and how they become sums of a block: exact in every order.

// A vector writes code that puts 4 codes of each row into b.codes; x is the place of their activations.
type vector struct {
	codes func()
	x     int
}

// dots sets acc to Σ codes·x for unsigned codes up to most. started says that acc already holds what to add to.
func (b *blocks) dots(vectors []vector, most int, started bool) {
	if b.stage == planes || b.stage == readOut {
		b.tileDots(vectors)
		return
	}
	if !b.Direct() {
		b.pairSums(vectors, most, func(first bool) { b.widen(b.pairs, started || !first) })
		return
	}
	if !started && b.stage != expand {
		for _, a := range b.acc {
			b.zero(a)
		}
	}
	chains := [][]string{b.acc}
	if b.rows == 1 && len(vectors) > 16 { // one chain of sums would be as long as the latency of all its links
		chains = append(chains, b.take(1))
		b.zero(chains[1][0])
	}
	loaded := -1
	for i, v := range vectors {
		b.unpacked(b.codes, v.codes)
		if b.stage == expand {
			continue
		}
		for r, acc := range chains[i%len(chains)] {
			if b.ARM {
				b.dotElement(r, v.x, &loaded, acc)
				continue
			}
			b.F("VPDPBUSD.BCST %s, %s, %s", b.x("DI", v.x, r), b.codes, acc)
		}
	}
	if len(chains) > 1 {
		b.F("VPADDD %s, %s, %s", chains[1][0], b.acc[0], b.acc[0])
	}
}

// dotElement is arm64's VPDPBUSD: both operands have signs, and activations are elements of a register. Those of a row
// are loaded by 16, unless these are the loaded ones.
func (b *blocks) dotElement(r, x int, loaded *int, acc string) {
	if sixteen := x &^ 15; sixteen != *loaded {
		for r := range b.rows {
			b.load(b.x("DI", sixteen, r), b.xs[r])
		}
		*loaded = sixteen
	}
	b.Dot(b.codes, b.xs[r], x%16/4, acc)
}

// pairSums sets pairs to sums of products of codes and x as int16, for each chunk of vectors, and calls done.
func (b *blocks) pairSums(vectors []vector, most int, done func(first bool)) {
	chunk := chunkOf(most)
	for i, v := range vectors {
		b.unpacked(b.codes, v.codes)
		if b.stage == expand {
			continue
		}
		for r, p := range b.pairs {
			x := b.x("DI", v.x, r)
			if i%chunk == 0 {
				b.F("VPBROADCASTD %s, %s", x, p)
				b.F("VPMADDUBSW %s, %s, %s", p, b.codes, p)
				continue
			}
			b.F("VPBROADCASTD %s, %s", x, b.t)
			b.F("VPMADDUBSW %s, %s, %s", b.t, b.codes, b.t)
			b.F("VPADDW %s, %s, %s", b.t, p, p)
		}
		if (i+1)%chunk == 0 || i+1 == len(vectors) {
			done(i < chunk)
		}
	}
}

// startLong begins a sum of dots that has started, of vectors from several loops.
func (b *blocks) startLong() {
	for _, p := range b.pairs {
		if b.stage != expand {
			b.zero(p)
		}
	}
}

func (b *blocks) addLong(vectors []vector) {
	if b.Direct() {
		b.dots(vectors, 0, true)
		return
	}
	for _, v := range vectors {
		b.unpacked(b.codes, v.codes)
		if b.stage == expand {
			continue
		}
		for r, p := range b.pairs {
			b.F("VPBROADCASTD %s, %s", b.x("DI", v.x, r), b.t)
			b.F("VPMADDUBSW %s, %s, %s", b.t, b.codes, b.t)
			b.F("VPADDW %s, %s, %s", b.t, p, p)
		}
	}
}

// endLong ends the sum of all vectors, of codes up to most.
func (b *blocks) endLong(most, vectors int) {
	if vectors > chunkOf(most) {
		panic("sums of so many products do not fit int16")
	}
	if !b.Direct() && b.stage != expand {
		b.widen(b.pairs, true)
	}
}

// scaledDots adds scale·Σ codes·x of a sub-block to isum. scale is int32 with VNNI, else twice int16. With VNNI sums of
// 16 that fit int16, and an unsigned scale, need no VPMULLD; only there may codes be shifted to the left by raised bits.
func (b *blocks) scaledDots(vectors []vector, most, raised int, scale string) {
	if b.VNNI && 16*127*most < 1<<15 {
		for ; len(vectors) > 0; vectors = vectors[4:] {
			b.dots(vectors[:4], most, false)
			b.lower(raised)
			b.scaledShort(b.inRegister(scale))
		}
		return
	}
	if b.Direct() {
		b.dots(vectors, most, false)
		b.scaled(scale)
		return
	}
	b.pairSums(vectors, most, func(bool) {
		factor := b.inRegister(scale)
		for r, p := range b.pairs {
			b.F("VPMADDWD %s, %s, %s", factor, p, p)
			b.F("VPADDD %s, %s, %s", p, b.isum[r], b.isum[r])
		}
	})
}

// lower makes up for codes that were shifted to the left.
func (b *blocks) lower(raised int) {
	for _, acc := range b.acc {
		if raised > 0 {
			b.F("VPSRAD $%d, %s, %s", raised, acc, acc)
		}
	}
}

// shortDots does what scaledDots does for sums of a sub-block that fit int16; scale leaves a scale in codes.
func (b *blocks) shortDots(vectors []vector, most int, scale func()) {
	if b.Direct() {
		b.dots(vectors, most, false)
		b.unpacked(b.codes, scale)
		b.scaledShort(b.codes)
		return
	}
	twice := b.acc[0]
	b.unpacked(twice, func() { b.twice(scale, twice) })
	b.scaledDots(vectors, most, 0, twice)
}

// twice puts the scale that code leaves in codes into both halves of each lane.
func (b *blocks) twice(scale func(), to string) {
	scale()
	b.F("VPSLLD $16, %s, %s", b.codes, b.t)
	b.F("VPSRLD $16, %s, %s", b.t, to)
	b.or(b.t, to, to)
}

// offsetDots adds scale·Σ (codes - 2^shift)·x of a sub-block of 16 to isum, given the place of -Σx; 2^shift·scale is
// below 2¹⁵. scale leaves int32 in codes. With VNNI codes may be shifted to the left by raised bits.
func (b *blocks) offsetDots(vectors []vector, most, raised int, base string, offset, shift int, scale func()) {
	if b.Direct() {
		b.startAt(base, offset, shift+raised)
		b.dots(vectors, most, true)
		b.lower(raised)
		if 16*127<<shift >= 1<<15 || b.ARM {
			b.unpacked(b.codes, scale)
			b.scaled(b.codes)
			return
		}
		b.unpacked(b.codes, func() {
			scale()
			b.and(b.Const("low16"), b.codes, b.codes)
		})
		b.scaledShort(b.codes)
		return
	}
	twice := b.acc[0]
	b.unpacked(twice, func() { b.twice(scale, twice) })
	b.unpacked(b.tmp, func() {
		b.F("VPSLLD $%d, %s, %s", 16+shift, b.codes, b.tmp)
		b.F("VPSRLD $16, %s, %s", b.tmp, b.tmp)
	})
	for r, sum := range b.isum {
		if b.stage == expand {
			break
		}
		b.F("VPBROADCASTD %s, %s", b.x(base, offset, r), b.t)
		b.F("VPMADDWD %s, %s, %s", b.tmp, b.t, b.t)
		b.F("VPADDD %s, %s, %s", b.t, sum, sum)
	}
	b.scaledDots(vectors, most, 0, twice)
}

// signedDots sets acc to Σ codes·x for signed codes without VNNI: |w| times x with the sign of w, and 2·128·127 < 2¹⁵.
func (b *blocks) signedDots(vectors []vector) {
	if b.ARM {
		b.dots(vectors, 127, false)
		return
	}
	for i, v := range vectors {
		b.unpacked(b.codes, v.codes)
		if b.stage == expand {
			continue
		}
		b.F("VPABSB %s, %s", b.codes, b.tmp)
		for r, p := range b.pairs {
			b.F("VPBROADCASTD %s, %s", b.x("DI", v.x, r), p)
			b.F("VPSIGNB %s, %s, %s", b.codes, p, p)
			b.F("VPMADDUBSW %s, %s, %s", p, b.tmp, p)
		}
		b.widen(b.pairs, i > 0)
	}
}

// splitDots sets acc to Σ codes·x for signed codes of a block of 32 without VNNI, by way of a panel. Bytes that are 128
// too large are high·16 + low: sums of 32 of either nibble's products fit int16, which takes two operations of any port
// for signedDots' two of few.
func (b *blocks) splitDots(vectors []vector) {
	used := b.Used()
	product := b.Reg()
	for i, v := range vectors {
		b.unpacked(b.codes, func() {
			v.codes()
			b.xor(b.Const("bit7"), b.codes, b.codes)
			b.F("VPSRLD $4, %s, %s", b.codes, b.tmp)
			b.and(b.Const("low4"), b.tmp, b.tmp)
			b.and(b.Const("low4"), b.codes, b.codes)
		})
		b.unpacked(b.tmp, func() {})
		if b.stage == expand {
			continue
		}
		for r, low := range b.pairs {
			high := b.acc[r]
			b.F("VPBROADCASTD %s, %s", b.x("DI", v.x, r), b.t)
			if i == 0 {
				b.F("VPMADDUBSW %s, %s, %s", b.t, b.codes, low)
				b.F("VPMADDUBSW %s, %s, %s", b.t, b.tmp, high)
				continue
			}
			b.F("VPMADDUBSW %s, %s, %s", b.t, b.codes, product)
			b.F("VPMADDUBSW %s, %s, %s", b.t, b.tmp, b.t)
			b.F("VPADDW %s, %s, %s", product, low, low)
			b.F("VPADDW %s, %s, %s", b.t, high, high)
		}
	}
	b.Free(used)
	for r, low := range b.pairs {
		if b.stage == expand {
			break
		}
		high := b.acc[r]
		b.F("VPMADDWD %s, %s, %s", b.Const("ones"), low, low)
		b.F("VPMADDWD %s, %s, %s", b.Const("sixteens"), high, high)
		b.F("VPADDD %s, %s, %s", low, high, high)
		b.F("VPBROADCASTD %s, %s", b.x("DX", x32Neg, r), b.t)
		b.F("VPSLLD $7, %s, %s", b.t, b.t)
		b.F("VPADDD %s, %s, %s", b.t, high, high)
	}
}

// chunkOf is how many sums of two products are added in int16 without VNNI: a power of two, with
// chunk·2·127·most < 2¹⁵.
func chunkOf(most int) int {
	chunk := 1
	for 2*chunk*2*127*most < 1<<15 {
		chunk *= 2
	}
	if chunk*2*127*most >= 1<<15 {
		panic("codes are too large for VPMADDUBSW")
	}
	return chunk
}

// widen adds pairs of int16 to acc, or sets acc.
func (b *blocks) widen(pairs []string, add bool) {
	for r, acc := range b.acc {
		if !add {
			b.F("VPMADDWD %s, %s, %s", b.Const("ones"), pairs[r], acc)
			continue
		}
		b.F("VPMADDWD %s, %s, %s", b.Const("ones"), pairs[r], pairs[r])
		b.F("VPADDD %s, %s, %s", pairs[r], acc, acc)
	}
}

// startAt sets acc to -2^shift·Σx, given the place of -Σx: codes are 2^shift too large.
func (b *blocks) startAt(base string, offset, shift int) {
	b.excess = 1 << shift
	if b.stage != fused && b.stage != multiply {
		return
	}
	for r, acc := range b.acc {
		if b.Wide() {
			b.F("VPSLLD.BCST $%d, %s, %s", shift, b.x(base, offset, r), acc)
			continue
		}
		b.F("VPBROADCASTD %s, %s", b.x(base, offset, r), acc)
		b.F("VPSLLD $%d, %s, %s", shift, acc, acc)
	}
}

// inRegister loads an operand into tmp, unless it is in a register or used only once.
func (b *blocks) inRegister(operand string) string {
	if b.rows == 1 || !strings.HasSuffix(operand, ")") {
		return operand
	}
	b.load(operand, b.tmp)
	return b.tmp
}

// scaledShort adds acc·scale to isum where sums are known to fit int16; scale is an int16 with zeros above, which on
// arm64 is not negative.
func (b *blocks) scaledShort(scale string) {
	switch b.stage {
	case planes:
		b.scalePlanes(scale)
		return
	case expand:
		return
	}
	for r, acc := range b.acc {
		if b.ARM {
			b.MulAdd(scale, acc, b.isum[r])
			continue
		}
		b.F("VPDPWSSD %s, %s, %s", scale, acc, b.isum[r])
	}
}

// scaled adds acc·scale to isum.
func (b *blocks) scaled(scale string) {
	switch b.stage {
	case planes:
		b.scalePlanes(scale)
		return
	case expand:
		return
	}
	scale = b.inRegister(scale)
	for r, acc := range b.acc {
		if b.ARM {
			b.MulAdd(scale, acc, b.isum[r])
			continue
		}
		b.F("VPMULLD %s, %s, %s", scale, acc, acc)
		b.F("VPADDD %s, %s, %s", acc, b.isum[r], b.isum[r])
	}
}
