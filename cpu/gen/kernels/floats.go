package main

import "fmt"

// Float formats: one vector holds one k of the rows. part[k%4] = fma(w, x, part[k%4]) in order of k.

// A pass computes some rows and some halves of the tile over all of k; ymm form needs several for four rows.
type pass struct{ rows, halves []int }

func (e *emitter) passes() []pass {
	if e.Wide() {
		return []pass{{[]int{0, 1, 2, 3}, []int{0}}}
	}
	if e.ARM {
		all := []int{0, 1, 2, 3}
		return []pass{{all, []int{0}}, {all, []int{1}}, {all, []int{2}}, {all, []int{3}}}
	}
	return []pass{{[]int{0, 1}, []int{0}}, {[]int{2, 3}, []int{0}}, {[]int{0, 1}, []int{1}}, {[]int{2, 3}, []int{1}}}
}

// emitFloat writes a kernel: four rows by one strip.
func (s source) emitFloat(e *emitter, name string) {
	const rows = 4
	frame := 0
	if !e.Wide() {
		frame = 64 * rows
	}
	e.begin(name, frame, s.name)
	var totals []string
	for i, p := range e.passes() {
		if i > 0 {
			e.F("")
			e.F("MOVQ w+32(FP), BX")
			e.F("MOVQ x+40(FP), DX")
		}
		e.F("MOVQ blocks+64(FP), CX")
		e.Free(0)
		totals = s.emitPass(e, p, fmt.Sprint(i))
	}
	if !e.Wide() {
		totals = make([]string, rows)
	}
	e.finish(totals, 0)
}

// emitPass leaves the sums in the registers it returns, in ymm form also in the frame.
func (s source) emitPass(e *emitter, p pass, label string) []string {
	parts := e.takeParts(p)
	for i := range parts {
		for _, r := range parts[i] {
			e.zero(r)
		}
	}
	s.fours(e, p, parts, label)
	e.addParts(parts)
	if !e.Wide() {
		for r, row := range p.rows {
			for h, half := range p.halves {
				e.F("VMOVUPS %s, %d(SP)", parts[0][r*len(p.halves)+h], 64*row+e.Width()*half)
			}
		}
	}
	return parts[0]
}

// partial sums of a pass, by row, then half; sum i has every fourth k from i on.
type partial [4][]string

func (e *emitter) takeParts(p pass) (parts partial) {
	for i := range parts {
		parts[i] = e.take(len(p.rows) * len(p.halves))
	}
	return parts
}

// fours adds the products of CX k, from BX and DX on.
func (s source) fours(e *emitter, p pass, parts partial, label string) {
	w, t := e.Reg(), e.Reg()
	step := func(i, at int) {
		if offset := s.tile * at; offset%64 == 0 {
			e.ahead(offset, "(BX)", near)
		}
		for h, half := range p.halves {
			s.convert(e, fmt.Sprintf("%d(BX)", s.tile*at+s.tile*e.Lanes/16*half), w)
			for r, row := range p.rows {
				acc := parts[i][r*len(p.halves)+h]
				if e.Wide() {
					e.F("VFMADD231PS.BCST %s, %s, %s", e.x("DX", 4*at, row), w, acc)
					continue
				}
				e.F("VBROADCASTSS %s, %s", e.x("DX", 4*at, row), t)
				e.F("VFMADD231PS %s, %s, %s", t, w, acc)
			}
		}
	}
	e.F("SUBQ $4, CX")
	e.F("JLT rest%s", label)
	e.F("four%s:", label)
	for i := range 4 {
		step(i, i)
	}
	e.F("ADDQ $%d, BX", 4*s.tile)
	e.F("ADDQ $16, DX")
	e.F("SUBQ $4, CX")
	e.F("JGE four%s", label)
	e.F("rest%s:", label)
	e.F("ADDQ $4, CX")
	for i := range 3 {
		e.F("JZ sums%s", label)
		step(i, i)
		e.F("DECQ CX")
	}
	e.F("sums%s:", label)
}

// addParts adds all parts into the first.
func (e *emitter) addParts(parts partial) {
	for i, a := range parts[0] {
		e.F("VADDPS %s, %s, %s", parts[1][i], a, a)
		e.F("VADDPS %s, %s, %s", parts[3][i], parts[2][i], parts[2][i])
		e.F("VADDPS %s, %s, %s", parts[2][i], a, a)
	}
}

func (e *emitter) convertF32(from, to string) { e.F("VMOVUPS %s, %s", from, to) }
func (e *emitter) convertF16(from, to string) { e.F("VCVTPH2PS %s, %s", from, to) }
func (e *emitter) convertBF16(from, to string) {
	e.F("VPMOVZXWD %s, %s", from, to)
	e.F("VPSLLD $16, %s, %s", to, to)
}
