package main

import "fmt"

// A panel routine for floats converts some k of one or two strips into its frame once, and multiplies groups of rows by
// them: see panel.go for the rest.
//
// The four partial sums of an output have nothing to do with each other until the end. So those of k%4 = 0 are
// computed for the whole panel, then the others: a group's sums are a register for each vector of 32 outputs, which
// leaves room for many rows. The weights of a part lie together; all sums stay in the frame from panel to panel.
//
// R13 is the distance of the two strips: 0 for one, which is then computed twice. AX moves in the next panel's weights.

// floatGroup is how many rows it takes for panels to pay, how many a group has, and how many the routine is given at
// most.
func (e *emitter) floatGroup() (least, rows, most int) {
	if e.Wide() {
		return 24, 12, 72
	}
	return 12, 3, 60
}

const (
	pairBytes      = 2 * 64            // of one k, and of a row's sums of one part
	sumsBytesOfRow = 4 * pairBytes     // of its parts
	partK          = 32                // of a panel
	partBytes      = partK * pairBytes // of a panel; all parts are a third of L1
)

func (s source) emitFloatPanel(e *emitter, name string) {
	_, rows, most := e.floatGroup()
	p := panel{source: s, blocks: &blocks{emitter: e, rows: rows}, most: most, bytes: 4 * partBytes}
	p.words = 64 + p.bytes + sumsBytesOfRow*most
	e.Enter(name, "panelKernel for "+s.name, p.words+wordsBytes, panelled)
	p.tmp = e.Reg()
	p.place(sumsBytesOfRow)
	e.F("XORL R13, R13")
	e.F("MOVQ blocks+56(FP), AX")
	e.F("IMUL3Q $%d, AX, AX", s.tile)
	e.F("CMPQ lanes+24(FP), $16")
	e.F("CMOVQGT AX, R13")
	e.F("")
	e.F("panel:")
	e.F("MOVQ blocks+56(FP), AX")
	e.F("MOVQ $%d, CX", 4*partK)
	e.F("CMPQ AX, CX")
	e.F("CMOVQGT CX, AX")
	e.F("MOVQ AX, %s", p.word(wordTiles))
	p.convertPanel()
	p.multiplyFloats()
	e.F("MOVQ %s, AX", p.word(wordTiles))
	e.F("LEAQ (AX*4), CX")
	e.F("ADDQ CX, x+40(FP)")
	e.F("SUBQ AX, blocks+56(FP)")
	e.F("JNZ panel")
	p.finishFloats()
}

// convertPanel makes floats of the panel, and moves w behind it.
func (p *panel) convertPanel() {
	p.F("// convert")
	p.F("MOVQ w+32(FP), BX")
	p.F("MOVQ %s, R15", p.word(wordBase))
	p.F("MOVQ %s, CX", p.word(wordTiles))
	p.F("convert:")
	for part := range 4 {
		for at := 0; at < pairBytes; at += p.Width() {
			from := fmt.Sprintf("%d(BX)", at%64*p.tile/64)
			if at >= 64 {
				from += "(R13*1)"
			}
			p.convert(p.emitter, from, p.tmp)
			p.store(p.tmp, fmt.Sprintf("%d(R15)", part*partBytes+at))
		}
		p.F("ADDQ $%d, BX", p.tile)
		p.F("DECQ CX")
		p.F("JZ converted")
	}
	p.F("ADDQ $%d, R15", pairBytes)
	p.F("JMP convert")
	p.F("converted:")
	p.F("MOVQ BX, w+32(FP)")
}

// multiplyFloats adds the panel's products to the sums of all rows.
func (p *panel) multiplyFloats() {
	p.F("// multiply")
	p.F("MOVQ rows+16(FP), AX")
	p.F("MOVQ AX, %s", p.word(wordRows))
	p.F("MOVQ x+40(FP), DX")
	p.F("MOVQ %s, R12", p.word(wordBase))
	p.F("ADDQ $%d, R12", p.bytes)
	p.F("group:")
	p.F("MOVQ %s, BX", p.word(wordBase))
	p.F("MOVQ w+32(FP), AX")
	p.F("XORL R11, R11")
	p.F("part:")
	p.F("MOVQ %s, CX", p.word(wordTiles))
	p.F("ADDQ $3, CX")
	p.F("SUBQ R11, CX")
	p.F("SHRQ $2, CX")
	p.F("JZ next")
	p.multiplyPart()
	p.F("next:")
	p.F("ADDQ $%d, BX", partBytes)
	p.F("ADDQ $%d, R12", pairBytes)
	p.F("INCQ R11")
	p.F("CMPQ R11, $4")
	p.F("JLT part")
	p.F("ADDQ $%d, R12", sumsBytesOfRow*(p.rows-1))
	p.F("LEAQ (DX)(R9*%d), DX", p.rows/3)
	p.F("SUBQ $%d, %s", p.rows, p.word(wordRows))
	p.F("JNZ group")
}

// multiplyPart adds CX products of part R11 to the sums of a group.
func (p *panel) multiplyPart() {
	p.Free(0)
	sums := make([][]string, p.rows)
	each := func(do func(place, r string)) {
		for row := range sums {
			for i, r := range sums[row] {
				do(fmt.Sprintf("%d(R12)", sumsBytesOfRow*row+p.Width()*i), r)
			}
		}
	}
	for row := range sums {
		sums[row] = p.take(pairBytes / p.Width())
	}
	each(func(place, r string) { p.load(place, r) })
	p.F("LEAQ (DX)(R11*4), DI")
	if p.rows > 8 {
		p.F("LEAQ (DI)(R8*8), R10")
	}
	p.F("MOVQ BX, R15")
	multiply := p.products(sums)
	p.F("SUBQ $%d, CX", stepsTogether)
	p.F("JB few")
	p.F("steps:")
	p.steps(stepsTogether, multiply)
	p.F("SUBQ $%d, CX", stepsTogether)
	p.F("JAE steps")
	p.F("few:")
	p.F("ADDQ $%d, CX", stepsTogether)
	p.F("JZ summed")
	p.F("step:")
	p.steps(1, multiply)
	p.F("DECQ CX")
	p.F("JNZ step")
	p.F("summed:")
	each(func(place, r string) { p.store(r, place) })
}

// stepsTogether is how many k of a part a pass of the loop multiplies: counting and moving on takes twice as many
// instructions as the products of a row.
const stepsTogether = 4

// steps multiplies n k of a part, and asks for as many of the next panel: at once they would fill all buffers.
func (p *panel) steps(n int, multiply func(step int)) {
	for step := range n {
		if at := step * p.tile; at%64 == 0 {
			p.F("PREFETCHT0 %d(AX)", at)
			p.F("PREFETCHT0 %d(AX)(R13*1)", at)
		}
		multiply(step)
	}
	p.F("ADDQ $%d, AX", n*p.tile)
	p.F("ADDQ $%d, R15", n*pairBytes)
	p.F("ADDQ $%d, DI", n*16)
	if p.rows > 8 {
		p.F("ADDQ $%d, R10", n*16)
	}
}

// products returns what adds the products of one step, counted from DI, R10 and R15, to sums. The fewer operands stay in
// registers while each of the others is loaded: with 3 or 12 rows there are fewer loads than multiplications, which have
// as many ports.
func (p *panel) products(sums [][]string) func(step int) {
	x := func(step, row int) string { return p.emitter.x([]string{"DI", "R10"}[row/8], 16*step, row%8) }
	w := func(step, i int) string { return fmt.Sprintf("%d(R15)", pairBytes*step+p.Width()*i) }
	vectors := len(sums[0])
	if vectors > p.rows {
		values, t := p.take(p.rows), p.Reg()
		return func(step int) {
			for row, r := range values {
				p.F("VBROADCASTSS %s, %s", x(step, row), r)
			}
			for i := range vectors {
				p.load(w(step, i), t)
				for row := range sums {
					p.F("VFMADD231PS %s, %s, %s", values[row], t, sums[row][i])
				}
			}
		}
	}
	weights, t := p.take(vectors), p.Reg()
	return func(step int) {
		for i, r := range weights {
			p.load(w(step, i), r)
		}
		for row := range sums {
			p.F("VBROADCASTSS %s, %s", x(step, row), t)
			for i, sum := range sums[row] {
				p.F("VFMADD231PS %s, %s, %s", t, weights[i], sum)
			}
		}
	}
}

// finishFloats adds the partial sums of each row, stores outputs strip by strip, and returns.
func (p *panel) finishFloats() {
	p.F("")
	p.F("strip:")
	p.results()
	p.F("row:")
	r := []string{p.Register(4), p.Register(5), p.Register(6), p.Register(7)}
	for half := 0; half < 64; half += p.Width() {
		for i := range 4 {
			p.load(fmt.Sprintf("%d(R12)", pairBytes*i+half), r[i])
		}
		p.F("VADDPS %s, %s, %s", r[1], r[0], r[0])
		p.F("VADDPS %s, %s, %s", r[3], r[2], r[2])
		p.F("VADDPS %s, %s, %s", r[2], r[0], r[0])
		switch {
		case p.ARM:
			p.store(r[0], fmt.Sprintf("%d(R12)", half))
		case p.Wide():
			p.F("VMOVUPS %s, K1, (DI)", r[0])
		default:
			p.F("VMASKMOVPS %s, Y%d, %d(DI)", r[0], half/32, half)
		}
	}
	if p.ARM {
		p.storeSums()
	}
	p.nextRow(sumsBytesOfRow)
	p.F("ADDQ $64, %s", p.word(wordBase))
	p.F("ADDQ $64, out+0(FP)")
	p.F("SUBQ $16, lanes+24(FP)")
	p.F("JGT strip")
	p.leave()
}
