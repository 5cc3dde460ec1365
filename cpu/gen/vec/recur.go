package main

// recur writes the routine of recurrences. In ymm form it takes 16 columns; in zmm form up to 64, those of the mask.
//
//	SI  row of S   DX  its stride   R8  k   R9  q   AX  row   CX  rows   R10  w, then y
func (w writer) recur() {
	w.Begin("recur", "(p *recurrence)")
	columns := 16
	if w.Wide() {
		columns = 64
	}
	w.Masks("recurrence_mask(DI)", columns)
	add, y, s := w.Vec(columns), w.Zero(columns), w.Vec(columns)
	a, each := w.Scalar(), w.Scalar()
	w.F("MOVQ recurrence_w(DI), R10")
	w.Op("VMOVUPS", w.Mem(0, "(R10)", 4, columns).Partial(), add)
	w.F("VBROADCASTSS recurrence_a(DI), %s", a.Part(0))
	w.F("MOVQ recurrence_s(DI), SI")
	w.F("MOVQ recurrence_stride(DI), DX")
	w.F("MOVQ recurrence_k(DI), R8")
	w.F("MOVQ recurrence_q(DI), R9")
	w.F("MOVQ recurrence_n(DI), CX")
	w.F("XORL AX, AX")
	w.F("step:")
	row := w.Mem(0, "(SI)", 4, columns).Partial()
	w.Op("VMULPS", row, a, s)
	w.F("VBROADCASTSS (R8)(AX*4), %s", each.Part(0))
	w.Op("VFMADD231PS", add, each, s)
	w.Op("VMOVUPS", s, row)
	w.F("VBROADCASTSS (R9)(AX*4), %s", each.Part(0))
	w.Op("VFMADD231PS", s, each, y)
	w.F("ADDQ DX, SI")
	w.F("INCQ AX")
	w.F("CMPQ AX, CX")
	w.F("JLT step")
	w.F("MOVQ recurrence_y(DI), R10")
	w.Op("VMOVUPS", y, w.Mem(0, "(R10)", 4, columns).Partial())
	w.End()
}
