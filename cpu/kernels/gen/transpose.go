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
	name, store := transposerName(fmt.Sprint(unit), stream)
	e.transposerOf(name, unit, 0, func() {
		switch unit {
		case 1:
			e.f("VMOVDQU bytesOf4<>(SB), Y15")
			e.f("VMOVDQU lanesOf4<>(SB), Y14")
		case 2:
			e.f("VPCMPEQD Y15, Y15, Y15")
			e.f("VPSRLD $16, Y15, Y15")
		}
	}, func() {
		e.counted("DX", "column", func() { e.transposeColumn(unit, store) })
		e.counted("BX", "unit", func() { e.transposeUnit(unit) })
	}, stream)
	return name
}

func transposerName(of string, stream bool) (name, store string) {
	if stream {
		return "stream" + of + "AVX2", "VMOVNTDQ"
	}
	return "transpose" + of + "AVX2", "VMOVDQU"
}

// transposerOf writes a transposer that repeats body, which moves on by columns and units, for each block.
func (e *emitter) transposerOf(name string, unit, frame int, begin, body func(), stream bool) {
	flags := "NOSPLIT"
	if frame > 0 {
		flags = "0"
	}
	e.f("")
	e.line("// %s is a transposer.\nTEXT ·%[1]s(SB), %s, $%d-56", name, flags, frame)
	for i, reg := range []string{"DI", "SI", "R8", "DX", "BX", "R13", "CX"} {
		e.f("MOVQ %s+%d(FP), %s", []string{"dst", "src", "stride", "columns", "units", "block", "blocks"}[i], 8*i, reg)
	}
	e.f("LEAQ (R8)(R8*2), R9")
	e.f("LEAQ (SI)(R8*4), R10")
	e.f("LEAQ (R10)(R8*4), R11")
	e.f("LEAQ (R11)(R8*4), R12")
	e.f("MOVQ DX, AX")
	e.f("SHLQ $4, AX")
	e.f("SUBQ AX, R13")
	e.f("IMUL3Q $%d, BX, AX", unit)
	e.f("SUBQ AX, R13")
	begin()
	e.f("block:")
	body()
	e.advanceRows("R13")
	e.f("MOVQ R13, AX")
	e.f("SHLQ $4, AX")
	e.f("ADDQ AX, DI")
	e.f("DECQ CX")
	e.f("JNZ block")
	if stream {
		e.f("SFENCE") // such stores are not ordered otherwise, and others will read what they wrote
	}
	e.f("VZEROUPPER")
	e.f("RET")
}

// counted runs a body as often as a register says, maybe never.
func (e *emitter) counted(times, label string, body func()) {
	e.f("MOVQ %s, AX", times)
	e.f("TESTQ AX, AX")
	e.f("JZ %sEnd", label)
	e.f("%s:", label)
	body()
	e.f("DECQ AX")
	e.f("JNZ %s", label)
	e.f("%sEnd:", label)
}

func (e *emitter) advanceRows(by string) {
	for _, reg := range []string{"SI", "R10", "R11", "R12"} {
		e.f("ADDQ %s, %s", by, reg)
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
			e.f("%s Y%d, %d(DI)", store, 8+k, 64*k)
			e.f("%s Y%d, %d(DI)", store, k, 64*k+32)
		}
	}
	e.advanceRows("$16")
	e.f("ADDQ $256, DI")
}

// transposeUnit does one unit of each row.
func (e *emitter) transposeUnit(unit int) {
	insert := map[int]string{1: "VPINSRB", 2: "VPINSRW", 4: "VPINSRD"}[unit]
	each := 16 / unit // rows in a register
	eachRow(func(row int, at string) {
		x := row / each
		if row%each == 0 {
			e.f("VPXOR X%d, X%[1]d, X%[1]d", x)
		}
		e.f("%s $%d, %s, X%d, X%[4]d", insert, row%each, at, x)
		if row%each == each-1 {
			e.f("VMOVDQU X%d, %d(DI)", x, 16*x)
		}
	})
	e.advanceRows(fmt.Sprintf("$%d", unit))
	e.f("ADDQ $%d, DI", 16*unit)
}

// sixteenRows transposes the 16 bytes at offset of each row: Y(8+k) becomes word k of rows 0 to 7, Yk of rows 8 to 15.
func (e *emitter) sixteenRows(offset int) {
	e.eightRows("SI", "R10", offset, 8)
	e.eightRows("R11", "R12", offset, 0)
}

// eightRows transposes 16 bytes of rows 0 to 3 at a and 4 to 7 at b: Y(to+k) becomes word k of the eight.
func (e *emitter) eightRows(a, b string, offset, to int) {
	for i, index := range []string{"", "(R8*1)", "(R8*2)", "(R9*1)"} {
		e.f("VMOVDQU %d(%s)%s, X%d", offset, a, index, i)
		e.f("VINSERTI128 $1, %d(%s)%s, Y%d, Y%d", offset, b, index, i, i)
	}
	e.f("VPUNPCKLDQ Y1, Y0, Y4")
	e.f("VPUNPCKHDQ Y1, Y0, Y5")
	e.f("VPUNPCKLDQ Y3, Y2, Y6")
	e.f("VPUNPCKHDQ Y3, Y2, Y7")
	e.f("VPUNPCKLQDQ Y6, Y4, Y%d", to)
	e.f("VPUNPCKHQDQ Y6, Y4, Y%d", to+1)
	e.f("VPUNPCKLQDQ Y7, Y5, Y%d", to+2)
	e.f("VPUNPCKHQDQ Y7, Y5, Y%d", to+3)
}

// halves stores the low halves of a word of rows 0 to 7 in Ya and of rows 8 to 15 in Yb, then the high halves.
func (e *emitter) halves(a, b, at int, store string) {
	e.f("VPAND Y15, Y%d, Y12", a)
	e.f("VPAND Y15, Y%d, Y13", b)
	e.f("VPSRLD $16, Y%d, Y%d", a, a)
	e.f("VPSRLD $16, Y%d, Y%d", b, b)
	e.f("VPACKUSDW Y13, Y12, Y12")
	e.f("VPACKUSDW Y%d, Y%d, Y13", b, a)
	e.f("VPERMQ $0xd8, Y12, Y12")
	e.f("VPERMQ $0xd8, Y13, Y13")
	e.f("%s Y12, %d(DI)", store, at)
	e.f("%s Y13, %d(DI)", store, at+32)
}

// quarters stores the bytes of a word of rows 0 to 7 in Ya and of rows 8 to 15 in Yb, one after another.
func (e *emitter) quarters(a, b, at int) {
	for _, y := range []int{a, b} {
		e.f("VPSHUFB Y15, Y%d, Y%[1]d", y)
		e.f("VPERMD Y%d, Y14, Y%[1]d", y)
	}
	e.f("VPUNPCKLQDQ Y%d, Y%d, Y12", b, a) // bytes 0 and 2
	e.f("VPUNPCKHQDQ Y%d, Y%d, Y13", b, a) // bytes 1 and 3
	e.f("VMOVDQU X12, %d(DI)", at)
	e.f("VMOVDQU X13, %d(DI)", at+16)
	e.f("VEXTRACTI128 $1, Y12, %d(DI)", at+32)
	e.f("VEXTRACTI128 $1, Y13, %d(DI)", at+48)
}

// quarterConstants writes how bytes of four rows come together, and then those of eight.
func (e *emitter) quarterConstants() {
	for at := 0; at < 32; at += 16 {
		e.line("DATA bytesOf4<>+%d(SB)/8, $0x0d0905010c080400", at)
		e.line("DATA bytesOf4<>+%d(SB)/8, $0x0f0b07030e0a0602", at+8)
	}
	e.line("GLOBL bytesOf4<>(SB), RODATA|NOPTR, $32")
	for i := range 4 {
		e.line("DATA lanesOf4<>+%d(SB)/8, $0x%016x", 8*i, uint64(4+i)<<32|uint64(i))
	}
	e.line("GLOBL lanesOf4<>(SB), RODATA|NOPTR, $32")
}
