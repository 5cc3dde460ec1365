package main

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

// panels writes the routines of panels, for groups of 4, 2 and 1 rows and elements of B of 4, 2 and 1 bytes, and returns
// the cases of Go that choose.
func (w writer) panels() string {
	var choice strings.Builder
	for _, size := range []int{4, 2, 1} {
		for _, rows := range []int{4, 2, 1} {
			name := fmt.Sprintf("panel%dx%d", rows, size)
			columns := 16
			if w.Wide() {
				columns = block
			}
			if rows == 1 && !w.Wide() { // sums of so few columns would wait for each other
				w.panel(name+"wide", rows, size, 32)
				fmt.Fprintf(&choice, "\tcase rows == %d && size == %d && p.mask>>31 != 0:\n\t\t%swide%s(p)\n", rows, size, name,
					w.Suffix)
			}
			w.panel(name, rows, size, columns)
			fmt.Fprintf(&choice, "\tcase rows == %d && size == %d:\n\t\t%s%s(p)\n", rows, size, name, w.Suffix)
		}
	}
	return choice.String()
}

// panel writes a routine for groups of so many rows and columns; in zmm form, for those of the panel's mask.
//
//	R8-R11  rows of A   SI  row of B   DX  its stride   AX  k   CX  end of k   BX  from B to what is read next
//	R13  row of C
func (w writer) panel(name string, rows, size, columns int) {
	w.Begin(name, "(p *panel)")
	sums := make([]asm.Vec, rows)
	for r := range sums {
		sums[r] = w.Vec(columns)
	}
	b, a := w.Vec(columns), w.Scalar()
	w.F("MOVQ panel_bStride(DI), DX")
	w.F("MOVQ panel_k(DI), CX")
	w.F("MOVQ panel_ahead(DI), BX")
	w.F("MOVQ panel_a(DI), R8")
	w.F("MOVQ panel_c(DI), R13")
	w.Masks("panel_mask(DI)", columns)
	w.F("group:")
	w.F("MOVQ panel_b(DI), SI")
	w.F("MOVQ panel_aStride(DI), AX")
	for r := range rows {
		w.F("LEAQ (R%d)(AX*1), R%d", 8+r, 9+r) // the last is the next group's first
		w.Op("VXORPS", sums[r], sums[r], sums[r])
	}
	w.F("XORL AX, AX")
	w.F("step:")
	w.load(size, w.Mem(0, "(SI)", size, columns).Partial(), b)
	for at := 0; at < columns*size; at += 64 {
		w.F("PREFETCHT1 %d(SI)(BX*1)", at)
	}
	for r, sum := range sums {
		w.F("VBROADCASTSS (R%d)(AX*4), %s", 8+r, a.Part(0))
		w.Op("VFMADD231PS", b, a, sum)
	}
	w.F("ADDQ DX, SI")
	w.F("INCQ AX")
	w.F("CMPQ AX, CX")
	w.F("JLT step")
	w.Op("VXORPS", a, a, a)
	for _, sum := range sums {
		w.Op("VADDPS", a, sum, sum)
		w.Op("VMOVUPS", sum, w.Mem(0, "(R13)", 4, columns).Partial())
		w.F("ADDQ panel_cStride(DI), R13")
	}
	w.F("MOVQ R%d, R8", 8+rows)
	w.F("DECQ panel_groups(DI)")
	w.F("JNZ group")
	w.End()
}
