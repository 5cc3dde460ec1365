package main

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

// narrowed writes the routines of products of one row by 16 columns, for elements of 4 and 2 bytes, and returns the
// cases of Go that choose.
func (w writer) narrowed() string {
	var choice strings.Builder
	for _, size := range []int{4, 2} {
		name := fmt.Sprintf("narrow%d", size)
		w.narrow(name, size)
		fmt.Fprintf(&choice, "\tcase size == %d:\n\t\t%s%s(p)\n", size, name, w.Suffix)
	}
	return choice.String()
}

// narrow writes a routine that adds four rows of B at a time, each to sums of its own.
//
//	R8  the row of A   SI  row of B   DX  its stride   AX  k   CX  end of k   R13  the row of C
func (w writer) narrow(name string, size int) {
	w.Begin(name, "(p *panel)")
	var sums [4]asm.Vec
	for i := range sums {
		sums[i] = w.Vec(16)
		w.Op("VXORPS", sums[i], sums[i], sums[i])
	}
	b, a := w.Vec(16), w.Scalar()
	w.F("MOVQ panel_bStride(DI), DX")
	w.F("MOVQ panel_k(DI), CX")
	w.F("MOVQ panel_a(DI), R8")
	w.F("MOVQ panel_c(DI), R13")
	w.F("MOVQ panel_b(DI), SI")
	w.F("XORL AX, AX")
	w.F("step:")
	for _, sum := range sums {
		w.load(size, w.Mem(0, "(SI)", size, 16), b)
		w.F("VBROADCASTSS (R8)(AX*4), %s", a.Part(0))
		w.Op("VFMADD231PS", b, a, sum)
		w.F("ADDQ DX, SI")
		w.F("INCQ AX")
	}
	w.F("CMPQ AX, CX")
	w.F("JLT step")
	w.Op("VADDPS", sums[1], sums[0], sums[0])
	w.Op("VADDPS", sums[3], sums[2], sums[2])
	w.Op("VADDPS", sums[2], sums[0], sums[0])
	w.Op("VMOVUPS", sums[0], w.Mem(0, "(R13)", 4, 16))
	w.End()
}
