package main

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

// Numbers of package vec for codes: those of Codes, and where what Weigh prepares has its number.
const (
	partWords  = 64 // bytes of a word of 16 lanes
	partCodes  = 32
	weightUnit = 2 * block
)

// bytesConstants are masks and ones for bytes and words.
var bytesConstants = []asm.Constant{
	{Name: "bytes03", Word: 0x03030303},
	{Name: "bytes04", Word: 0x04040404},
	{Name: "bytes07", Word: 0x07070707},
	{Name: "bytes0f", Word: 0x0f0f0f0f},
	{Name: "bytes10", Word: 0x10101010},
	{Name: "evenBytes", Word: 0x00ff00ff},
	{Name: "wordOnes", Word: 0x00010001},
}

// code is a kind of codes; see Codes of package vec.
type code struct {
	bits int
	book bool
}

func (c code) String() string {
	if c.book {
		return fmt.Sprintf("Book%d", c.bits)
	}
	return fmt.Sprintf("Even%d", c.bits)
}

var codes = []code{{4, false}, {5, false}, {4, true}, {3, true}, {2, true}}

// coded writes the routines of codes, and returns the cases of Go that choose one for K and one for V.
func (w writer) coded() (keys, values string) {
	if !w.ARM { // there both are the twins'
		w.weigh()
		if !w.Wide() { // rows are short: zmm form would save little
			w.butterflies()
		}
	}
	var k, v strings.Builder
	for _, c := range codes {
		for _, rows := range []int{4, 2, 1} {
			choose := fmt.Sprintf("\tcase bits == %d && rows == %d && book == %t:\n\t\t", c.bits, rows, c.book)
			w.codedKeys(c, rows)
			fmt.Fprintf(&k, "%skeys%sx%d%s(p)\n", choose, c, rows, w.Suffix)
			w.codedValues(c, rows)
			fmt.Fprintf(&v, "%svalues%sx%d%s(p)\n", choose, c, rows, w.Suffix)
		}
	}
	return k.String(), v.String()
}

// logic writes a bitwise instruction, which zmm form spells with the size of what it masks.
func (w writer) logic(op string, args ...asm.Vec) {
	if w.Wide() {
		op += "Q"
	}
	w.Op(op, args...)
}

// one takes a register.
func (w writer) one() asm.Vec { return w.Vec(w.Lanes) }

// unpacker writes the steps of a part of codes: words are read once, where they are needed first.
type unpacker struct {
	writer
	code
	words    []asm.Vec // as many as are needed at a time
	x, t     asm.Vec   // codes of a step; x has its levels
	table    asm.Vec
	ahead    string // register of what is read next
	prefetch int    // words until a cache line is full
}

// unpack takes the registers of an unpacker, and loads levels that lie in a table.
func (w writer) unpack(c code, table, ahead string) *unpacker {
	u := &unpacker{writer: w, code: c, ahead: ahead}
	for range map[int]int{2: 1, 3: 3, 4: 1, 5: 2}[c.bits] {
		u.words = append(u.words, w.one())
	}
	u.x, u.t = w.one(), w.one()
	hold := []string{"bytes03", "bytes04", "bytes07", "bytes0f", "bytes10", "evenBytes", "wordOnes"}
	load := "VBROADCASTI128"
	switch {
	case w.Wide():
		w.Hold("VBROADCASTSS", hold...)
		load = "VBROADCASTI32X4"
	case w.ARM:
		w.Hold("VMOVDQU", hold[:len(hold)-1]...)
		load = "VMOVDQU"
	}
	if c.book {
		u.table = w.one()
		w.F("%s %s, %s", load, table, u.table.Part(0))
	}
	return u
}

// load reads a word of the part at SI.
func (u *unpacker) load(word int, to asm.Vec) {
	u.F("VMOVDQU%s %d(SI), %s", map[bool]string{true: "64"}[u.Wide()], word*partWords, to.Part(0))
	if u.prefetch--; u.prefetch < 0 || u.Wide() {
		u.prefetch = 16/u.Lanes - 1
		u.F("PREFETCHT1 (%s)", u.ahead)
		u.F("ADDQ $64, %s", u.ahead)
	}
}

// field is some bits of bytes: of v to the right by so many bits, or to the left by less than none.
func (u *unpacker) field(v asm.Vec, shift int, mask string, to asm.Vec) {
	switch {
	case shift > 0:
		u.Op("VPSRLW", asm.Imm(shift), v, to)
		v = to
	case shift < 0:
		u.Op("VPSLLW", asm.Imm(-shift), v, to)
		v = to
	}
	u.logic("VPAND", u.Constant(mask), v, to)
}

// step writes step j, from word first of SI on: its levels are in x then.
func (u *unpacker) step(first, j int) {
	w := u.words
	switch u.bits {
	case 2:
		if j%4 == 0 {
			u.load(first+j/4, w[0])
		}
		u.field(w[0], j%4*2, "bytes03", u.x)
	case 3:
		if j < 6 {
			if j%2 == 0 {
				u.load(first+j/2, w[j/2])
			}
			u.field(w[j/2], j%2*3, "bytes07", u.x)
			break
		}
		u.field(w[j-6], 6, "bytes03", u.x)
		u.field(w[2], j-2, "bytes04", u.t)
		u.logic("VPOR", u.t, u.x, u.x)
	case 4:
		if j%2 == 0 {
			u.load(first+j/2, w[0])
		}
		u.field(w[0], j%2*4, "bytes0f", u.x)
	case 5:
		if j == 0 {
			u.load(first, w[1])
		}
		if j%2 == 0 {
			u.load(first+1+j/2, w[0])
		}
		u.field(w[0], j%2*4, "bytes0f", u.x)
		u.field(w[1], j-4, "bytes10", u.t)
		u.logic("VPOR", u.t, u.x, u.x)
	}
	if u.book {
		u.Op("VPSHUFB", u.x, u.table, u.x)
	}
}

// codedKeys writes a product of prepared queries with K in codes, for groups of so many of them; see CodedKeys.Multiply.
//
//	R8-R11  queries   AX  bytes of features done   BX  their scale's number   CX  features left
//	SI  codes   DX  scales   R12  what is read next   R13  scores
//
// On amd64 even levels of 4 bits are added up in words for a part, of 5 bits for two steps: these hold the largest sums.
// On arm64 levels of a table are signed, and have no bias.
func (w writer) codedKeys(c code, rows int) {
	w.Begin(fmt.Sprintf("keys%sx%d", c, rows), "(p *keyProduct)")
	u := w.unpack(c, "keyProduct_table(DI)", "R12")
	sums, scores := make([]asm.Vec, rows), make([]asm.Vec, rows)
	for r := range rows {
		sums[r] = w.one()
		if scores[r] = sums[r]; !c.book {
			scores[r] = w.one()
		}
	}
	q, scale := w.queries(rows), u.x
	w.F("MOVQ keyProduct_next(DI), R12")
	w.F("MOVQ keyProduct_query(DI), R8")
	w.F("MOVQ keyProduct_scores(DI), R13")
	w.F("group:")
	w.F("MOVQ keyProduct_stride(DI), AX")
	for r := range rows - 1 {
		w.F("LEAQ (R%d)(AX*1), R%d", 8+r, 9+r)
	}
	for _, name := range []string{"codes", "scales"} {
		w.F("MOVQ keyProduct_%s(DI), AX", name)
		w.F("MOVQ AX, keyProduct_%s(DI)", map[string]string{"codes": "at", "scales": "scaleAt"}[name])
	}
	w.F("MOVQ $%d, keyProduct_passes(DI)", block/w.Lanes)
	w.F("pass:")
	w.F("MOVQ keyProduct_at(DI), SI")
	w.F("MOVQ keyProduct_scaleAt(DI), DX")
	w.F("MOVQ keyProduct_features(DI), CX")
	w.F("MOVQ keyProduct_numbers(DI), BX")
	w.F("XORL AX, AX")
	for _, v := range scores {
		w.logic("VPXOR", v, v, v)
	}
	w.F("part:")
	if !c.book {
		for _, v := range sums {
			w.logic("VPXOR", v, v, v)
		}
	}
	w.keySteps(u, sums, q)
	w.F("done:")
	if !c.book {
		w.keyScores(c, sums, scores, scale, q[0])
		w.F("ADDQ $32, DX")
		w.F("ADDQ $8, BX")
	}
	w.F("ADDQ $%d, SI", c.bits*partWords)
	w.F("ADDQ $%d, AX", partCodes)
	w.F("SUBQ $%d, CX", partCodes)
	w.F("JGT part")
	if c.book {
		w.keyScores(c, sums, scores, scale, q[0])
	}
	for r, v := range scores {
		w.F("VMOVUPS %s, %d(R13)", v.Part(0), 4*block*r)
	}
	w.nextKeys(rows)
	w.End()
}

// queries takes registers for queries: on arm64 one for each, of whose bytes instructions take four.
func (w writer) queries(rows int) []asm.Vec {
	if !w.ARM {
		return []asm.Vec{w.one()}
	}
	q := make([]asm.Vec, rows)
	for r := range q {
		q[r] = w.one()
	}
	return q
}

// keySteps adds the products of a part's steps, as far as there are features.
func (w writer) keySteps(u *unpacker, sums, q []asm.Vec) {
	u.prefetch = 0
	for j := range 8 {
		if j%2 == 0 && j > 0 {
			w.F("CMPQ CX, $%d", 4*j)
			w.F("JLE done")
		}
		u.step(0, j)
		for r, sum := range sums {
			if w.ARM {
				if j%4 == 0 {
					w.F("VMOVDQU %d(R%d)(AX*1), %s", 4*j, 8+r, q[r].Part(0))
				}
				w.Dot(u.x.Part(0), q[r].Part(0), j%4, sum.Part(0))
				continue
			}
			q := q[0]
			w.F("VPBROADCASTD %d(R%d)(AX*1), %s", 4*j, 8+r, q.Part(0))
			w.Op("VPMADDUBSW", q, u.x, q)
			if u.book || u.bits == 5 {
				w.Op("VPMADDWD", w.Constant("wordOnes"), q, q)
				w.Op("VPADDD", q, sum, sum)
			} else {
				w.Op("VPADDW", q, sum, sum)
			}
		}
	}
}

// keyScores makes scores of sums; it uses these up.
func (w writer) keyScores(c code, sums, scores []asm.Vec, scale, t asm.Vec) {
	w.F("VCVTPH2PS (DX), %s", scale.Part(0))
	for r, sum := range sums {
		if !c.book && c.bits == 4 && !w.ARM {
			w.Op("VPMADDWD", w.Constant("wordOnes"), sum, sum)
		}
		if !c.book || !w.ARM {
			w.F("VPBROADCASTD 4(R%d)(BX*1), %s", 8+r, t.Part(0))
			w.Op("VPSUBD", t, sum, sum)
		}
		w.Op("VCVTDQ2PS", sum, sum)
		w.Op("VMULPS", scale, sum, sum)
		w.F("VBROADCASTSS (R%d)(BX*1), %s", 8+r, t.Part(0))
		if c.book {
			w.Op("VMULPS", t, sum, sum)
		} else {
			w.Op("VFMADD231PS", t, sum, scores[r])
		}
	}
}

// afterAll goes to a label unless this was the last pass of those for 16 lanes, by how many there are left with it.
func (w writer) afterAll(left, free, label string) {
	passes := 16 / w.Lanes
	w.F("MOVQ %s, %s", left, free)
	w.F("ANDQ $%d, %s", passes-1, free)
	w.F("CMPQ %s, $1", free)
	w.F("JNZ %s", label)
}

// nextKeys goes on to the next positions, then to the next queries.
func (w writer) nextKeys(rows int) {
	w.F("ADDQ $%d, R13", w.Width())
	for _, of := range []struct{ at, step string }{{"at", "chunk"}, {"scaleAt", "scale"}} {
		size := w.Width() // of codes, or of halves
		if of.at == "scaleAt" {
			size /= 2
		}
		w.F("MOVQ keyProduct_%s(DI), AX", of.at)
		if w.Wide() {
			w.F("ADDQ keyProduct_%s(DI), AX", of.step)
		} else {
			w.F("ADDQ $%d, AX", size)
			w.afterAll("keyProduct_passes(DI)", "BX", "same_"+of.at)
			w.F("ADDQ keyProduct_%s(DI), AX", of.step)
			w.F("SUBQ $%d, AX", 16/w.Lanes*size)
			w.Line("same_%s:", of.at)
		}
		w.F("MOVQ AX, keyProduct_%s(DI)", of.at)
	}
	w.F("DECQ keyProduct_passes(DI)")
	w.F("JNZ pass")
	w.F("ADDQ $%d, R13", 4*block*(rows-1))
	w.F("ADDQ keyProduct_stride(DI), R%d", 7+rows)
	w.F("MOVQ R%d, R8", 7+rows)
	w.F("MOVQ keyProduct_codes(DI), R12")
	w.F("DECQ keyProduct_groups(DI)")
	w.F("JNZ group")
}

// codedValues writes a product of prepared weights with V in codes; see CodedValues.Multiply.
//
//	R8-R11  weights   SI  codes   R12  what is read next   R13  sums   BX  bytes from row to row of them   AX  three times as many
func (w writer) codedValues(c code, rows int) {
	w.Begin(fmt.Sprintf("values%sx%d", c, rows), "(p *valueProduct)")
	u := w.unpack(c, "valueProduct_table(DI)", "R12")
	sums := make([]asm.Vec, rows)
	for r := range rows {
		sums[r] = w.one()
	}
	high, t := w.one(), w.one()
	w.F("MOVQ valueProduct_next(DI), R12")
	w.F("MOVQ valueProduct_weights(DI), R8")
	w.F("MOVQ valueProduct_row(DI), BX")
	w.F("MOVQ valueProduct_sums(DI), DX")
	w.F("group:")
	w.F("MOVQ valueProduct_stride(DI), AX")
	for r := range rows {
		w.F("LEAQ (R%d)(AX*1), R%d", 8+r, 9+r) // the last is the next group's first
	}
	w.F("MOVQ R%d, CX", 8+rows)
	w.F("MOVQ valueProduct_codes(DI), SI")
	w.F("MOVQ DX, R13")
	w.F("MOVQ valueProduct_passes(DI), AX")
	w.F("MOVQ AX, valueProduct_left(DI)")
	w.F("pass:")
	for _, v := range sums {
		w.logic("VPXOR", v, v, v)
	}
	u.prefetch = 0
	for j := range 16 {
		u.step(j/8*c.bits, j%8)
		w.Op("VPSRLW", asm.Imm(8), u.x, high)
		w.logic("VPAND", w.Constant("evenBytes"), u.x, u.x)
		for r, sum := range sums {
			for i, x := range []asm.Vec{u.x, high} {
				w.F("VPBROADCASTD %d(R%d), %s", 8*j+4*i, 8+r, t.Part(0))
				w.Op("VPMADDWD", t, x, t)
				w.Op("VPADDD", t, sum, sum)
			}
		}
	}
	w.F("LEAQ (BX)(BX*2), AX")
	for r, sum := range sums {
		w.F("VPBROADCASTD %d(R%d), %s", weightUnit+4, 8+r, t.Part(0))
		w.Op("VPSUBD", t, sum, sum)
		w.Op("VCVTDQ2PS", sum, sum)
		w.F("VBROADCASTSS %d(R%d), %s", weightUnit, 8+r, t.Part(0))
		w.Op("VMULPS", t, sum, sum)
		w.F("VMOVUPS %s, %s", sum.Part(0), []string{"(R13)", "(R13)(BX*1)", "(R13)(BX*2)", "(R13)(AX*1)"}[r])
	}
	w.nextValues(c, rows)
	w.End()
}

// nextValues goes on to the next features, then to the next weights.
func (w writer) nextValues(c code, rows int) {
	chunk := 2 * c.bits * partWords
	w.F("ADDQ $%d, R13", w.Width())
	if w.Wide() {
		w.F("ADDQ $%d, SI", chunk)
	} else {
		w.F("ADDQ $%d, SI", w.Width())
		w.afterAll("valueProduct_left(DI)", "AX", "same")
		w.F("ADDQ $%d, SI", chunk-partWords)
		w.F("same:")
	}
	w.F("DECQ valueProduct_left(DI)")
	w.F("JNZ pass")
	for range rows {
		w.F("ADDQ BX, DX")
	}
	w.F("MOVQ CX, R8")
	w.F("MOVQ valueProduct_codes(DI), R12")
	w.F("DECQ valueProduct_groups(DI)")
	w.F("JNZ group")
}

// weigh writes the routine of CodedValues.Weigh for one scale.
func (w writer) weigh() {
	w.Begin("weigh", "(to *byte, w *float32, s *[Block]uint16, rows, stride, offset int, factor, unit float32)")
	s, x, sum := w.Vec(block), w.one(), w.Vec(16)
	factor := w.Broadcast("factor")
	w.Op("VCVTPH2PS", w.At("s", 0, block), s)
	w.Op("VMULPS", factor, s, s)
	w.F("MOVL unit+%d(FP), R11", 8*6+4)
	w.Times("rows", func() {
		w.logic("VPXOR", sum, sum, sum)
		to, from := w.Arg("to"), w.At("w", 0, block)
		for i := range block / 16 {
			if w.Wide() {
				w.F("VMULPS %s, %s, %s", from.Part(i), s.Part(i), x.Part(0))
				w.Op("VCVTPS2DQ", x, x)
				w.Op("VPADDD", x, sum, sum)
				w.F("VPMOVSDW %s, %d(%s)", x.Part(0), 32*i, to)
				continue
			}
			high := factor // it was used
			for half, v := range []asm.Vec{x, high} {
				w.F("VMULPS %s, %s, %s", from.Part(2*i+half), s.Part(2*i+half), v.Part(0))
				w.Op("VCVTPS2DQ", v, v)
				w.Op("VPADDD", v, sum.Some(half, 1), sum.Some(half, 1))
			}
			w.Op("VPACKSSDW", high, x, x)
			w.Op("VPERMQ", asm.Imm(0xd8), x, x)
			w.F("VMOVDQU %s, %d(%s)", x.Part(0), 32*i, to)
		}
		w.F("VMOVD %s, R12", w.Fold("VPADDD", sum).Part(0))
		w.F("IMULL %s, R12", w.Arg("offset"))
		w.F("MOVL R11, %d(%s)", weightUnit, to)
		w.F("MOVL R12, %d(%s)", weightUnit+4, to)
		w.F("ADDQ %s, %s", w.Arg("stride"), to)
		w.Advance("w", block)
	})
	w.End()
}

// butterflies writes the routine of ISA.Butterflies, for 16 elements or more: first those within a register, then those of
// registers.
func (w writer) butterflies() {
	w.Begin("butterflies", "(x *float32, n int)")
	signs := make([]asm.Vec, 3)
	for i, name := range []string{"oddSigns", "pairSigns", "highSigns"} {
		signs[i] = w.one()
		w.F("VMOVDQU %s<>(SB), %s", name, signs[i].Part(0))
	}
	x, y, z := w.one(), w.one(), w.one()
	w.F("LEAQ (DI)(SI*4), DX") // end
	w.F("MOVQ DI, AX")
	w.F("within:")
	w.F("VMOVUPS (AX), %s", x.Part(0))
	for i, swap := range []string{"VPERMILPS $0xb1,", "VPERMILPS $0x4e,", "VPERM2F128 $1, " + x.Part(0) + ","} {
		w.F("%s %s, %s", swap, x.Part(0), y.Part(0))
		w.Op("VXORPS", signs[i], x, x)
		w.Op("VADDPS", x, y, x)
	}
	w.F("VMOVUPS %s, (AX)", x.Part(0))
	w.F("ADDQ $32, AX")
	w.F("CMPQ AX, DX")
	w.F("JLT within")
	w.F("MOVQ $32, CX") // half
	w.F("across:")
	w.F("MOVQ DI, AX")
	w.F("some:")
	w.F("LEAQ (AX)(CX*1), R8") // end of the first half
	w.F("pair:")
	w.F("VMOVUPS (AX), %s", x.Part(0))
	w.F("VMOVUPS (AX)(CX*1), %s", y.Part(0))
	w.Op("VADDPS", y, x, z)
	w.Op("VSUBPS", y, x, x)
	w.F("VMOVUPS %s, (AX)", z.Part(0))
	w.F("VMOVUPS %s, (AX)(CX*1)", x.Part(0))
	w.F("ADDQ $32, AX")
	w.F("CMPQ AX, R8")
	w.F("JLT pair")
	w.F("ADDQ CX, AX")
	w.F("CMPQ AX, DX")
	w.F("JLT some")
	w.F("SHLQ $1, CX")
	w.F("LEAQ (DI)(CX*1), AX")
	w.F("CMPQ AX, DX")
	w.F("JLT across")
	w.End()
}
