package main

import "fmt"

// transposer writes transpose1, transpose2 or transpose4 for AVX2: it puts units of that many bytes of 16 rows side by
// side, 16 bytes of each row at a time, and then a few units one by one. Those that stream write columns past the
// caches: a line that is written as a whole need not be read before.
//
//	DI  what is written      SI, R10, R11, R12  rows 0, 4, 8, 12
//	R8  from a row to the next, R9 three times that
//	CX  blocks to go         R13  left over of a block
//	DX  columns, BX units, AX of them to go
func (e *emitter) transposer(unit int, stream bool) string {
	name, what, store := transposerName(fmt.Sprint(unit), fmt.Sprintf("units of %d bytes", unit), stream)
	e.transposerOf(name, what, unit, 0, func() {
		switch unit {
		case 1:
			e.F("VMOVDQU bytesOf4<>(SB), Y15")
			e.F("VMOVDQU lanesOf4<>(SB), Y14")
		case 2:
			e.F("VPCMPEQD Y15, Y15, Y15")
			e.F("VPSRLD $16, Y15, Y15")
		}
	}, func() {
		e.counted("DX", "column", func() { e.transposeColumn(unit, store) })
		e.counted("BX", "unit", func() { e.transposeUnit(unit) })
	}, stream)
	return name
}

func transposerName(of, units string, stream bool) (name, what, store string) {
	what = "transposer for " + units
	if stream {
		return "stream" + of + "AVX2", what + " past the caches", "VMOVNTDQ"
	}
	return "transpose" + of + "AVX2", what, "VMOVDQU"
}

// transposerOf writes a transposer that repeats body, which moves on by columns and units, for each block.
func (e *emitter) transposerOf(name, what string, unit, frame int, begin, body func(), stream bool) {
	e.Enter(name, what, frame, transpose)
	for i, reg := range []string{"DI", "SI", "R8", "DX", "BX", "R13", "CX"} {
		e.Load([]string{"dst", "src", "stride", "columns", "units", "block", "blocks"}[i], reg)
	}
	e.F("LEAQ (R8)(R8*2), R9")
	e.F("LEAQ (SI)(R8*4), R10")
	e.F("LEAQ (R10)(R8*4), R11")
	e.F("LEAQ (R11)(R8*4), R12")
	e.F("MOVQ DX, AX")
	e.F("SHLQ $4, AX")
	e.F("SUBQ AX, R13")
	e.F("IMUL3Q $%d, BX, AX", unit)
	e.F("SUBQ AX, R13")
	begin()
	e.F("block:")
	body()
	e.advanceRows("R13")
	e.F("MOVQ R13, AX")
	e.F("SHLQ $4, AX")
	e.F("ADDQ AX, DI")
	e.F("DECQ CX")
	e.F("JNZ block")
	if stream {
		e.F("SFENCE") // such stores are not ordered otherwise, and others will read what they wrote
	}
	e.F("VZEROUPPER")
	e.F("RET")
}

// counted runs a body as often as a register says, maybe never.
func (e *emitter) counted(times, label string, body func()) {
	e.F("MOVQ %s, AX", times)
	e.F("TESTQ AX, AX")
	e.F("JZ %sEnd", label)
	e.F("%s:", label)
	body()
	e.F("DECQ AX")
	e.F("JNZ %s", label)
	e.F("%sEnd:", label)
}

func (e *emitter) advanceRows(by string) {
	for _, reg := range []string{"SI", "R10", "R11", "R12"} {
		e.F("ADDQ %s, %s", by, reg)
	}
}

// eachRow visits where the rows lie.
func eachRow(visit func(row int, at string)) {
	for i, base := range []string{"SI", "R10", "R11", "R12"} {
		for j, index := range []string{"", "(R8*1)", "(R8*2)", "(R9*1)"} {
			visit(4*i+j, fmt.Sprintf("(%s)%s", base, index))
		}
	}
}

// transposeColumn does 16 bytes of each row.
func (e *emitter) transposeColumn(unit int, store string) {
	e.sixteenRows(0)
	for k := range 4 {
		switch unit {
		case 1:
			e.quarters(8+k, k, 64*k)
		case 2:
			e.halves(8+k, k, 64*k, store)
		case 4:
			e.F("%s Y%d, %d(DI)", store, 8+k, 64*k)
			e.F("%s Y%d, %d(DI)", store, k, 64*k+32)
		}
	}
	e.advanceRows("$16")
	e.F("ADDQ $256, DI")
}

// transposeUnit does one unit of each row.
func (e *emitter) transposeUnit(unit int) {
	insert := map[int]string{1: "VPINSRB", 2: "VPINSRW", 4: "VPINSRD"}[unit]
	each := 16 / unit // rows in a register
	eachRow(func(row int, at string) {
		x := row / each
		if row%each == 0 {
			e.F("VPXOR X%d, X%[1]d, X%[1]d", x)
		}
		e.F("%s $%d, %s, X%d, X%[4]d", insert, row%each, at, x)
		if row%each == each-1 {
			e.F("VMOVDQU X%d, %d(DI)", x, 16*x)
		}
	})
	e.advanceRows(fmt.Sprintf("$%d", unit))
	e.F("ADDQ $%d, DI", 16*unit)
}

// sixteenRows transposes the 16 bytes at offset of each row: Y(8+k) becomes word k of rows 0 to 7, Yk of rows 8 to 15.
func (e *emitter) sixteenRows(offset int) {
	e.eightRows("SI", "R10", offset, 8)
	e.eightRows("R11", "R12", offset, 0)
}

// eightRows transposes 16 bytes of rows 0 to 3 at a and 4 to 7 at b: Y(to+k) becomes word k of the eight.
func (e *emitter) eightRows(a, b string, offset, to int) {
	for i, index := range []string{"", "(R8*1)", "(R8*2)", "(R9*1)"} {
		e.F("VMOVDQU %d(%s)%s, X%d", offset, a, index, i)
		e.F("VINSERTI128 $1, %d(%s)%s, Y%d, Y%d", offset, b, index, i, i)
	}
	e.F("VPUNPCKLDQ Y1, Y0, Y4")
	e.F("VPUNPCKHDQ Y1, Y0, Y5")
	e.F("VPUNPCKLDQ Y3, Y2, Y6")
	e.F("VPUNPCKHDQ Y3, Y2, Y7")
	e.F("VPUNPCKLQDQ Y6, Y4, Y%d", to)
	e.F("VPUNPCKHQDQ Y6, Y4, Y%d", to+1)
	e.F("VPUNPCKLQDQ Y7, Y5, Y%d", to+2)
	e.F("VPUNPCKHQDQ Y7, Y5, Y%d", to+3)
}

// halves stores the low halves of a word of rows 0 to 7 in Ya and of rows 8 to 15 in Yb, then the high halves.
func (e *emitter) halves(a, b, at int, store string) {
	e.F("VPAND Y15, Y%d, Y12", a)
	e.F("VPAND Y15, Y%d, Y13", b)
	e.F("VPSRLD $16, Y%d, Y%d", a, a)
	e.F("VPSRLD $16, Y%d, Y%d", b, b)
	e.F("VPACKUSDW Y13, Y12, Y12")
	e.F("VPACKUSDW Y%d, Y%d, Y13", b, a)
	e.F("VPERMQ $0xd8, Y12, Y12")
	e.F("VPERMQ $0xd8, Y13, Y13")
	e.F("%s Y12, %d(DI)", store, at)
	e.F("%s Y13, %d(DI)", store, at+32)
}

// quarters stores the bytes of a word of rows 0 to 7 in Ya and of rows 8 to 15 in Yb, one after another.
func (e *emitter) quarters(a, b, at int) {
	for _, y := range []int{a, b} {
		e.F("VPSHUFB Y15, Y%d, Y%[1]d", y)
		e.F("VPERMD Y%d, Y14, Y%[1]d", y)
	}
	e.F("VPUNPCKLQDQ Y%d, Y%d, Y12", b, a) // bytes 0 and 2
	e.F("VPUNPCKHQDQ Y%d, Y%d, Y13", b, a) // bytes 1 and 3
	e.F("VMOVDQU X12, %d(DI)", at)
	e.F("VMOVDQU X13, %d(DI)", at+16)
	e.F("VEXTRACTI128 $1, Y12, %d(DI)", at+32)
	e.F("VEXTRACTI128 $1, Y13, %d(DI)", at+48)
}

// quarterConstants writes how bytes of four rows come together, and then those of eight.
func (e *emitter) quarterConstants() {
	const low, high = 0x0d0905010c080400, 0x0f0b07030e0a0602
	e.Data("bytesOf4", low, high, low, high)
	e.Data("lanesOf4", 4<<32, 5<<32|1, 6<<32|2, 7<<32|3)
}
