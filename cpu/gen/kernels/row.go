package main

import "fmt"

// A row routine multiplies one row of activations by up to four strips. It takes them in turn, some k of each at a
// time, so that memory is read in as many streams: that is faster than one, however long. Sums wait in the frame.
//
// Besides the registers of emit.go: R8 leads to the next strip, R14 three further, R9 counts strips; R15 counts the blocks of
// small tiles, with others it leads to what to ask for.
const (
	maxStrips  = 4    // Streams of package kernels
	rowBytes   = 1152 // of a strip at a time, in formats of blocks: longer runs of one stream keep the others waiting
	rowFloatsK = 64
)

// row writes one row routine.
type row struct {
	*emitter
	source
	sums, bytes int // where the sums of strips are, bytes of each; behind them two words
}

func (s source) emitBlocksRow(e *emitter, name string) {
	r := row{e, s, s.slots * e.Width(), 64}
	r.begin(name)
	b := &blocks{emitter: e, rows: 1, asking: asking{striped: !s.small() && !s.gathers}}
	b.registers(s.subs)
	if e.Wide() {
		b.total = e.take(1)
		e.keep(s.keep...)
	} else {
		e.keepSome(s.keep)
	}
	r.eachPart(max(1, rowBytes/s.tile), func(count string) {
		for _, t := range b.total {
			e.load("(R12)", t)
		}
		if count != "" {
			e.F("MOVQ %s, R15", count)
			e.F("block:")
		}
		s.block(b)
		if count != "" {
			e.F("ADDQ $%d, BX", s.tile)
			e.F("ADDQ $%d, DX", s.x)
			e.F("DECQ R15")
			e.F("JNZ block")
		}
		for _, t := range b.total {
			e.store(t, "(R12)")
		}
	})
	r.finish(func() {})
}

func (s source) emitFloatRow(e *emitter, name string) {
	r := row{e, s, 0, 4 * 64}
	r.begin(name)
	p := pass{rows: []int{0}}
	for half := range 16 / e.Lanes {
		p.halves = append(p.halves, half)
	}
	parts := e.takeParts(p)
	each := func(visit func(r, place string)) {
		for i := range parts {
			for h, r := range parts[i] {
				visit(r, fmt.Sprintf("%d(R12)", 64*i+e.Width()*h))
			}
		}
	}
	r.eachPart(rowFloatsK, func(count string) {
		each(func(r, place string) { e.load(place, r) })
		e.F("MOVQ %s, CX", count)
		s.fours(e, p, parts, "")
		each(func(r, place string) { e.store(r, place) })
	})
	r.finish(func() {
		each(func(r, place string) { e.load(place, r) })
		e.addParts(parts)
		for h, r := range parts[0] {
			e.store(r, fmt.Sprintf("%d(R12)", e.Width()*h))
		}
	})
}

// word is one behind the sums: the strip, the number of tiles in a part.
func (r *row) word(n int) string { return fmt.Sprintf("%d(SP)", r.sums+maxStrips*r.bytes+8*n) }

// begin enters the routine and clears the sums.
func (r *row) begin(name string) {
	r.Enter(name, "rowKernel for "+r.source.name, r.sums+maxStrips*r.bytes+16, rowKernel)
	r.clearFrame(r.sums, maxStrips*r.bytes)
	r.F("MOVQ wStride+48(FP), R8")
	r.F("LEAQ (R8)(R8*2), R14")
}

// eachPart repeats body for parts of k, of at most so many tiles, and in each part for every strip. Body finds the
// strip's sums at R12, and the number of tiles in count, if it can be more than one; it may move BX and DX.
func (r *row) eachPart(tiles int, body func(count string)) {
	strip, count := r.word(0), r.word(1)
	if tiles == 1 {
		count = ""
	}
	r.F("")
	r.source.eachPart(r.emitter, tiles, r.source.x, count, func() {
		r.F("MOVQ w+32(FP), BX")
		r.F("MOVQ strips+16(FP), R9")
		r.F("MOVQ BX, R15")
		r.F("LEAQ %d(SP), R12", r.sums)
		r.F("strip:")
		r.F("MOVQ BX, %s", strip)
		r.F("MOVQ x+40(FP), DX")
		body(count)
		r.F("ADDQ $%d, R12", r.bytes)
		r.F("MOVQ %s, BX", strip)
		r.F("ADDQ R8, BX")
		r.F("DECQ R9")
		r.F("JNZ strip")
	})
}

// finish stores what total leaves at R12 for each strip, and returns.
func (r *row) finish(total func()) {
	r.F("")
	r.F("MOVQ out+0(FP), DI")
	r.F("MOVQ stride+8(FP), R8")
	r.F("MOVQ strips+16(FP), R9")
	r.F("LEAQ %d(SP), R12", r.sums)
	r.F("outputs:")
	total()
	r.F("MOVL $16, CX")
	r.F("CMPQ R9, $1")
	r.F("CMOVQEQ lanes+24(FP), CX")
	r.lanesMask()
	r.storeSums()
	r.F("ADDQ R8, DI")
	r.F("ADDQ $%d, R12", r.bytes)
	r.F("DECQ R9")
	r.F("JNZ outputs")
	r.F("VZEROUPPER")
	r.F("RET")
}
