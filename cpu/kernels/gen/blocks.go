package main

import (
	"fmt"
	"strings"
)

const (
	xNeg    = 256 // places in a block of 256 activations, see acts.go
	xSums   = 320
	xScale  = 336
	x32Dx   = 32 // and of 32
	x32Neg  = 36
	perTile = 64 // bytes between vectors of 4-byte units
)

// A stage is what a body is written for.
type stage int

const (
	fused    stage = iota // codes are multiplied as they are unpacked
	expand                // codes and scales go to the panel
	multiply              // and come from there
)

// blocks writes a routine for formats of blocks: for every block an exact integer sum, then one FMA. Its frame has
// the slots of the body; then, in ymm form, 16 float sums for each row.
type blocks struct {
	*emitter
	stage          stage
	at             int // bytes from R15 to the next vector of the panel
	vectors        int // in the panel
	rows           int
	isum           []string // the block's sums, a vector for each row, if sub-blocks have scales
	acc            []string // a sub-block's sums, else the block's
	pairs          []string // sums of products as int16; without VNNI
	codes, tmp, t  string
	total          []string // float sums; zmm only
	frame, totalAt int      // bytes
}

func (s source) emitBlocks(e *emitter, name string, rows int) {
	b := &blocks{emitter: e, rows: rows, totalAt: s.slots * e.width()}
	b.frame = b.totalAt
	if !e.wide() {
		b.frame += 64 * rows
	}
	e.begin(name, b.frame, fmt.Sprintf("%s is a kernel for %s, rows of activations: %d.", name, s.name, rows))
	b.registers(s.subs)
	if e.wide() {
		b.total = e.take(rows)
		for _, r := range b.total {
			e.zero(r)
		}
		e.keep(s.keep...)
	} else {
		e.keep(s.keep[0])
		e.zero(b.t)
		for at := 0; at < 64*rows; at += 32 {
			e.store(b.t, fmt.Sprintf("%d(SP)", b.totalAt+at))
		}
	}
	e.f("")
	e.f("block:")
	if !e.wide() {
		e.f("XORL SI, SI")
		e.f("LEAQ %d(SP), R12", b.totalAt)
		e.f("half:")
	}
	s.body(b)
	if !e.wide() {
		e.f("ADDQ $2, SI")
		e.f("ADDQ $32, R12")
		e.f("CMPQ SI, $4")
		e.f("JLT half")
	}
	e.f("ADDQ $%d, BX", s.tile)
	e.f("ADDQ $%d, DX", s.x)
	e.f("DECQ blocks+64(FP)")
	e.f("JNZ block")
	e.f("")
	totals := b.total
	if !e.wide() {
		totals = make([]string, rows)
	}
	e.finish(totals, b.totalAt)
}

// registers takes those that every body uses.
func (b *blocks) registers(subs bool) {
	if subs {
		b.isum = b.take(b.rows)
	}
	b.acc = b.take(b.rows)
	if !b.vnni {
		b.pairs = b.take(b.rows)
	}
	b.codes, b.tmp, b.t = b.reg(), b.reg(), b.reg()
}

// loop repeats body, which must leave AX alone.
func (b *blocks) loop(name string, times int, body func()) {
	label := name + [...]string{fused: "", expand: "Expand", multiply: "Multiply"}[b.stage]
	b.f("MOVL $%d, AX", times)
	b.f("%s:", label)
	before := b.vectors
	body()
	b.vectors = before + times*(b.vectors-before)
	b.step()
	b.f("DECL AX")
	b.f("JNZ %s", label)
}

// step moves R15 behind the vectors of the panel that were used since it moved last.
func (b *blocks) step() {
	if b.at > 0 {
		b.f("ADDQ $%d, R15", b.at)
	}
	b.at = 0
}

// unpacked leaves what code computes in register r: at once, or by way of the panel.
func (b *blocks) unpacked(r string, code func()) {
	if b.stage != multiply {
		code()
	}
	place := fmt.Sprintf("%d(R15)", b.at)
	switch b.stage {
	case expand:
		b.store(r, place)
		b.vectors++
	case multiply:
		b.load(place, r)
	}
	if b.stage != fused {
		b.at += b.width()
	}
}

// ahead asks for weights that are read from memory: not those of a panel.
func (b *blocks) ahead(offset int, base string) {
	if b.stage != multiply {
		b.emitter.ahead(offset, base)
	}
}

func (b *blocks) slot(vector int) string { return fmt.Sprintf("%d(SP)", vector*b.width()) }

// nibbles puts half of the bytes of vector i at R10 into codes.
func (b *blocks) nibbles(i int, high bool) {
	if !high {
		b.ahead(perTile*i, "R10")
		b.cut(perTile*i, 0, "low4")
		return
	}
	b.cut(perTile*i, 4, "low4")
}

// twoBits puts the codes of a run, of vector i at R10, into codes.
func (b *blocks) twoBits(run, i int) {
	if run == 0 {
		b.ahead(perTile*i, "R10")
	}
	b.cut(perTile*i, 2*run, "low2")
}

// cut shifts the vector at R10 to the right and puts those bits into codes that are set in the constant.
func (b *blocks) cut(offset, shift int, constant string) {
	from := fmt.Sprintf("%d(R10)", offset)
	if _, kept := b.regs[constant]; shift == 0 && kept {
		b.and(from, b.c(constant), b.codes)
		return
	}
	if !b.wide() || shift == 0 {
		b.load(from, b.codes)
		from = b.codes
	}
	if shift > 0 {
		b.f("VPSRLD $%d, %s, %s", shift, from, b.codes)
	}
	b.and(b.c(constant), b.codes, b.codes)
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

// bits sets those bits of codes that are set in the constant and in the vector in memory, shifted to the left.
func (b *blocks) bits(from string, shift int, constant string) {
	if !b.wide() || shift == 0 {
		b.load(from, b.tmp)
		from = b.tmp
	}
	if shift != 0 {
		b.f("%s $%d, %s, %s", shiftName(shift), max(shift, -shift), from, b.tmp)
	}
	b.merge(b.tmp, constant)
}

func shiftName(n int) string {
	if n < 0 {
		return "VPSRLD"
	}
	return "VPSLLD"
}

// A vector writes code that puts 4 codes of each row into b.codes; x is the place of their activations.
type vector struct {
	codes func()
	x     int
}

// dots sets acc to Σ codes·x for unsigned codes up to most. started says that acc already holds what to add to.
func (b *blocks) dots(vectors []vector, most int, started bool) {
	if !b.vnni {
		b.pairSums(vectors, most, func(first bool) { b.widen(b.pairs, started || !first) })
		return
	}
	if !started && b.stage != expand {
		for _, a := range b.acc {
			b.zero(a)
		}
	}
	for _, v := range vectors {
		b.unpacked(b.codes, v.codes)
		if b.stage == expand {
			continue
		}
		for r, acc := range b.acc {
			b.f("VPDPBUSD.BCST %s, %s, %s", b.x("DI", v.x, r), b.codes, acc)
		}
	}
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
				b.f("VPBROADCASTD %s, %s", x, p)
				b.f("VPMADDUBSW %s, %s, %s", p, b.codes, p)
				continue
			}
			b.f("VPBROADCASTD %s, %s", x, b.t)
			b.f("VPMADDUBSW %s, %s, %s", b.t, b.codes, b.t)
			b.f("VPADDW %s, %s, %s", b.t, p, p)
		}
		if (i+1)%chunk == 0 || i+1 == len(vectors) {
			done(i < chunk)
		}
	}
}

// scaledDots adds scale·Σ codes·x of a sub-block to isum. scale is int32 with VNNI, else twice int16.
func (b *blocks) scaledDots(vectors []vector, most int, scale string) {
	if b.vnni {
		b.dots(vectors, most, false)
		b.scaled(scale)
		return
	}
	b.pairSums(vectors, most, func(bool) {
		factor := b.inRegister(scale)
		for r, p := range b.pairs {
			b.f("VPMADDWD %s, %s, %s", factor, p, p)
			b.f("VPADDD %s, %s, %s", p, b.isum[r], b.isum[r])
		}
	})
}

// shortDots does what scaledDots does for sums of a sub-block that fit int16; scale leaves a scale in codes.
func (b *blocks) shortDots(vectors []vector, most int, scale func()) {
	if b.vnni {
		b.dots(vectors, most, false)
		b.unpacked(b.codes, scale)
		b.scaledShort(b.codes)
		return
	}
	twice := b.acc[0]
	b.unpacked(twice, func() { b.twice(scale, twice) })
	b.scaledDots(vectors, most, twice)
}

// twice puts the scale that code leaves in codes into both halves of each lane.
func (b *blocks) twice(scale func(), to string) {
	scale()
	b.f("VPSLLD $16, %s, %s", b.codes, b.t)
	b.f("VPSRLD $16, %s, %s", b.t, to)
	b.or(b.t, to, to)
}

// offsetDots adds scale·Σ (codes - 2^shift)·x of a sub-block of 16 to isum, given the place of -Σx; 2^shift·scale is
// below 2¹⁵. scale leaves int32 in codes.
func (b *blocks) offsetDots(vectors []vector, most int, base string, offset, shift int, scale func()) {
	if b.vnni {
		b.startAt(base, offset, shift)
		b.dots(vectors, most, true)
		if 16*127<<shift >= 1<<15 {
			b.unpacked(b.codes, scale)
			b.scaled(b.codes)
			return
		}
		b.unpacked(b.codes, func() {
			scale()
			b.and(b.c("low16"), b.codes, b.codes)
		})
		b.scaledShort(b.codes)
		return
	}
	twice := b.acc[0]
	b.unpacked(twice, func() { b.twice(scale, twice) })
	b.unpacked(b.tmp, func() {
		b.f("VPSLLD $%d, %s, %s", 16+shift, b.codes, b.tmp)
		b.f("VPSRLD $16, %s, %s", b.tmp, b.tmp)
	})
	for r, sum := range b.isum {
		if b.stage == expand {
			break
		}
		b.f("VPBROADCASTD %s, %s", b.x(base, offset, r), b.t)
		b.f("VPMADDWD %s, %s, %s", b.tmp, b.t, b.t)
		b.f("VPADDD %s, %s, %s", b.t, sum, sum)
	}
	b.scaledDots(vectors, most, twice)
}

// signedDots sets acc to Σ codes·x for signed codes without VNNI: |w| times x with the sign of w, and 2·128·127 < 2¹⁵.
func (b *blocks) signedDots(vectors []vector) {
	for i, v := range vectors {
		b.unpacked(b.codes, v.codes)
		if b.stage == expand {
			continue
		}
		b.f("VPABSB %s, %s", b.codes, b.tmp)
		if b.wide() {
			b.f("VPMOVB2M %s, K2", b.codes)
			b.zero(b.codes)
		}
		for r, p := range b.pairs {
			b.f("VPBROADCASTD %s, %s", b.x("DI", v.x, r), p)
			if b.wide() {
				b.f("VPSUBB %s, %s, K2, %s", p, b.codes, p)
			} else {
				b.f("VPSIGNB %s, %s, %s", b.codes, p, p)
			}
			b.f("VPMADDUBSW %s, %s, %s", p, b.tmp, p)
		}
		b.widen(b.pairs, i > 0)
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
			b.f("VPMADDWD %s, %s, %s", b.c("ones"), pairs[r], acc)
			continue
		}
		b.f("VPMADDWD %s, %s, %s", b.c("ones"), pairs[r], pairs[r])
		b.f("VPADDD %s, %s, %s", pairs[r], acc, acc)
	}
}

// startAt sets acc to -2^shift·Σx, given the place of -Σx: codes are 2^shift too large.
func (b *blocks) startAt(base string, offset, shift int) {
	if b.stage == expand {
		return
	}
	for r, acc := range b.acc {
		if b.wide() {
			b.f("VPSLLD.BCST $%d, %s, %s", shift, b.x(base, offset, r), acc)
			continue
		}
		b.f("VPBROADCASTD %s, %s", b.x(base, offset, r), acc)
		b.f("VPSLLD $%d, %s, %s", shift, acc, acc)
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

// scaledShort adds acc·scale to isum where sums are known to fit int16; scale is an int16 with zeros above. VNNI only.
func (b *blocks) scaledShort(scale string) {
	if b.stage == expand {
		return
	}
	for r, acc := range b.acc {
		b.f("VPDPWSSD %s, %s, %s", scale, acc, b.isum[r])
	}
}

// scaled adds acc·scale to isum.
func (b *blocks) scaled(scale string) {
	if b.stage == expand {
		return
	}
	scale = b.inRegister(scale)
	for r, acc := range b.acc {
		b.f("VPMULLD %s, %s, %s", scale, acc, acc)
		b.f("VPADDD %s, %s, %s", acc, b.isum[r], b.isum[r])
	}
}

// halves loads what addBlock multiplies: the half-precision scales of the tile at offset.
func (b *blocks) halves(offset int) {
	if b.stage != expand {
		b.f("VCVTPH2PS %s, %s", b.lane2(offset), b.tmp)
	}
}

// addBlock adds tmp·dx·sums to the float sums; sums are destroyed. fma is VFMADD231PS or VFNMADD231PS.
func (b *blocks) addBlock(fma string, dx int, sums []string) {
	if b.stage == expand {
		return
	}
	for r, sum := range sums {
		b.f("VCVTDQ2PS %s, %s", sum, sum)
		b.broadcast32("VMULPS", b.x("DX", dx, r), b.tmp, b.t)
		if b.total != nil {
			b.f("%s %s, %s, %s", fma, b.t, sum, b.total[r])
			continue
		}
		b.f("VMOVUPS %d(R12), %s", 64*r, b.codes)
		b.f("%s %s, %s, %s", fma, b.t, sum, b.codes)
		b.f("VMOVUPS %s, %d(R12)", b.codes, 64*r)
	}
}
