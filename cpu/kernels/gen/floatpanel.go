package main

import "fmt"

// A panel routine for floats converts some k of the strip into its frame once, and multiplies groups of rows by them.
// The four partial sums of every row stay in the frame from panel to panel: see panel.go for the rest.

// floatGroup is how many rows a group has, and how many the routine is given at most: partial sums fill registers.
func (s isa) floatGroup() (rows, most int) {
	if s.wide() {
		return 6, 60
	}
	return 3, 60
}

const (
	partsBytes      = 4 * 64  // of a row
	floatPanelBytes = 8 << 10 // a sixth of L1: the activations of a group's rows may share its sets
)

func (s source) emitFloatPanel(e *emitter, name string) {
	rows, most := e.floatGroup()
	p := panel{source: s, blocks: &blocks{emitter: e, rows: rows}, most: most, bytes: floatPanelBytes}
	p.words = 64 + p.bytes + partsBytes*most
	e.enter(name, p.words+wordsBytes, 64, fmt.Sprintf("%s is a panelKernel for %s.", name, s.name))
	parts := [4][]string{}
	for i := range parts {
		parts[i] = e.take(rows)
	}
	p.tmp, p.t = e.reg(), e.reg()
	p.place(partsBytes)
	e.f("")
	e.f("panel:")
	e.f("MOVQ blocks+56(FP), AX")
	e.f("MOVQ $%d, CX", floatPanelBytes/e.width())
	e.f("CMPQ AX, CX")
	e.f("CMOVQGT CX, AX")
	e.f("MOVQ AX, %s", p.word(wordTiles))
	if !e.wide() {
		e.f("XORL SI, SI")
		e.f("half:")
	}
	p.convertPanel()
	p.multiplyFloats(parts)
	if !e.wide() {
		e.f("ADDQ $2, SI")
		e.f("CMPQ SI, $4")
		e.f("JLT half")
	}
	e.f("MOVQ %s, AX", p.word(wordTiles))
	e.f("IMUL3Q $%d, AX, CX", s.tile)
	e.f("ADDQ CX, w+32(FP)")
	e.f("LEAQ (AX*4), CX")
	e.f("ADDQ CX, x+40(FP)")
	e.f("SUBQ AX, blocks+56(FP)")
	e.f("JNZ panel")
	p.finishFloats()
}

// convertPanel makes floats of the panel, in ymm form of half of its rows.
func (p *panel) convertPanel() {
	p.f("// convert")
	p.f("MOVQ w+32(FP), BX")
	if !p.wide() { // half of the bytes of one k
		for range p.tile / 32 {
			p.f("LEAQ (BX)(SI*8), BX")
		}
	}
	p.f("MOVQ %s, R15", p.word(wordBase))
	p.f("MOVQ %s, CX", p.word(wordTiles))
	p.f("convert:")
	p.emitter.ahead(0, "BX")
	p.convert(p.emitter, "(BX)", p.tmp)
	p.store(p.tmp, "(R15)")
	p.f("ADDQ $%d, BX", p.tile)
	p.f("ADDQ $%d, R15", p.width())
	p.f("DECQ CX")
	p.f("JNZ convert")
}

func (p *panel) multiplyFloats(parts [4][]string) {
	p.f("// multiply")
	p.f("MOVQ rows+16(FP), AX")
	p.f("MOVQ x+40(FP), DX")
	p.f("MOVQ %s, R12", p.word(wordBase))
	p.f("ADDQ $%d, R12", p.bytes)
	if !p.wide() {
		p.f("LEAQ (R12)(SI*8), R12")
		p.f("LEAQ (R12)(SI*8), R12")
	}
	each := func(do func(place, r string)) {
		for i := range parts {
			for row, r := range parts[i] {
				do(fmt.Sprintf("%d(R12)", partsBytes*row+64*i), r)
			}
		}
	}
	p.f("group:")
	each(func(place, r string) { p.load(place, r) })
	p.f("MOVQ DX, DI")
	p.f("MOVQ %s, R15", p.word(wordBase))
	p.f("MOVQ %s, CX", p.word(wordTiles))
	step := func(i int) {
		p.load(fmt.Sprintf("%d(R15)", p.width()*i), p.tmp)
		for row, acc := range parts[i] {
			if p.wide() {
				p.f("VFMADD231PS.BCST %s, %s, %s", p.emitter.x("DI", 4*i, row), p.tmp, acc)
				continue
			}
			p.f("VBROADCASTSS %s, %s", p.emitter.x("DI", 4*i, row), p.t)
			p.f("VFMADD231PS %s, %s, %s", p.t, p.tmp, acc)
		}
	}
	p.f("SUBQ $4, CX")
	p.f("JLT rest")
	p.f("four:")
	for i := range 4 {
		step(i)
	}
	p.f("ADDQ $%d, R15", 4*p.width())
	p.f("ADDQ $16, DI")
	p.f("SUBQ $4, CX")
	p.f("JGE four")
	p.f("rest:")
	p.f("ADDQ $4, CX")
	for i := range 3 {
		p.f("JZ done")
		step(i)
		p.f("DECQ CX")
	}
	p.f("done:")
	each(func(place, r string) { p.store(r, place) })
	p.f("ADDQ $%d, R12", partsBytes*p.rows)
	p.f("LEAQ (DX)(R9*%d), DX", p.rows/3)
	p.f("SUBQ $%d, AX", p.rows)
	p.f("JNZ group")
}

// finishFloats adds the partial sums of each row, stores lanes outputs, and returns.
func (p *panel) finishFloats() {
	p.results()
	p.f("row:")
	for half := 0; half < 64; half += p.width() {
		r := []string{"Z4", "Z5", "Z6", "Z7"}
		if !p.wide() {
			r = []string{"Y4", "Y5", "Y6", "Y7"}
		}
		for i := range 4 {
			p.load(fmt.Sprintf("%d(R12)", 64*i+half), r[i])
		}
		p.f("VADDPS %s, %s, %s", r[1], r[0], r[0])
		p.f("VADDPS %s, %s, %s", r[3], r[2], r[2])
		p.f("VADDPS %s, %s, %s", r[2], r[0], r[0])
		if p.wide() {
			p.f("VMOVUPS %s, K1, (DI)", r[0])
		} else {
			p.f("VMASKMOVPS %s, Y%d, %d(DI)", r[0], half/32, half)
		}
	}
	p.leave(partsBytes)
}
