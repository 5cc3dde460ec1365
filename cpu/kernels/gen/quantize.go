package main

import (
	"fmt"
	"math"
)

// quantizer writes quantize32 or quantize256 for AVX2: n blocks of activations, see acts.go.
//
//	DI  the block, SI  its values, CX  blocks to go
func (e *emitter) quantizer(n int) string {
	name := fmt.Sprintf("quantize%dAVX2", n)
	e.f("")
	e.line("// %s is a quantizer for blocks of %d.\nTEXT ·%[1]s(SB), NOSPLIT, $0-25", name, n)
	e.f("MOVQ dst+0(FP), DI")
	e.f("MOVQ src+8(FP), SI")
	e.f("MOVQ n+16(FP), CX")
	e.f("VPCMPEQD Y15, Y15, Y15") // -1
	e.f("VPSRLD $1, Y15, Y14")    // without the sign
	e.f("VPABSB Y15, Y13")        // bytes of 1
	e.f("MOVL $0x%08x, AX", math.Float32bits(127))
	e.f("VMOVD AX, X12")
	e.f("VMOVDQU deal<>(SB), Y11")
	e.f("")
	e.f("block:")
	e.magnitude(n)
	if n == 32 {
		e.round()
		e.f("VPERM2I128 $1, Y2, Y2, Y3")
		e.f("VPADDD Y3, Y2, Y2")
		e.f("VPSIGND Y15, Y2, Y2")
		e.f("VMOVD X2, 36(DI)")
		e.f("VMOVSS X10, 32(DI)")
		e.f("ADDQ $40, DI")
		e.f("ADDQ $128, SI")
	} else {
		e.round256()
	}
	e.f("DECQ CX")
	e.f("JNZ block")
	e.f("MOVB $1, ret+24(FP)")
	e.f("VZEROUPPER")
	e.f("RET")
	e.f("refuse:")
	e.f("MOVB $0, ret+24(FP)")
	e.f("VZEROUPPER")
	e.f("RET")
	return name
}

// magnitude sets Y9 to 127/amax in all lanes and X10 to its inverse, or both to zero below 2⁻¹⁰⁰. Magnitudes order
// like their bits, and NaN above infinity.
func (e *emitter) magnitude(n int) {
	e.f("VPAND (SI), Y14, Y0")
	for at := 32; at < 128; at += 32 {
		e.f("VPAND %d(SI), Y14, Y1", at)
		e.f("VPMAXUD Y1, Y0, Y0")
	}
	if n == 256 {
		e.f("LEAQ 128(SI), R8")
		e.f("MOVL $7, AX")
		e.f("largest:")
		for i := range 4 {
			e.f("VPAND %d(R8), Y14, Y%d", 32*i, 1+i)
		}
		e.f("VPMAXUD Y1, Y2, Y1")
		e.f("VPMAXUD Y3, Y4, Y3")
		e.f("VPMAXUD Y1, Y0, Y0")
		e.f("VPMAXUD Y3, Y0, Y0")
		e.f("ADDQ $128, R8")
		e.f("DECL AX")
		e.f("JNZ largest")
	}
	e.f("VEXTRACTI128 $1, Y0, X1")
	e.f("VPMAXUD X1, X0, X0")
	e.f("VPSHUFD $0x4e, X0, X1")
	e.f("VPMAXUD X1, X0, X0")
	e.f("VPSHUFD $0xb1, X0, X1")
	e.f("VPMAXUD X1, X0, X0")
	e.f("VMOVD X0, AX")
	e.f("VPXOR Y9, Y9, Y9")
	e.f("VPXOR X10, X10, X10")
	e.f("CMPL AX, $0x7f800000")
	e.f("JAE refuse")
	e.f("CMPL AX, $0x%08x", math.Float32bits(float32(math.Ldexp(1, -100))))
	e.f("JB scaled")
	e.f("VDIVSS X0, X12, X9")
	e.f("MOVL $0x%08x, AX", math.Float32bits(1))
	e.f("VMOVD AX, X10")
	e.f("VDIVSS X9, X10, X10")
	e.f("VBROADCASTSS X9, Y9")
	e.f("scaled:")
}

// round quantises 32 values at SI to DI, and sets Y2 to their sums: of the first 16 in the low half, of the others
// in the high half, in all words.
func (e *emitter) round() {
	for i := range 4 {
		e.f("VMULPS %d(SI), Y9, Y%d", 32*i, i)
	}
	for i := range 4 {
		e.f("VCVTPS2DQ Y%d, Y%d", i, i)
	}
	e.f("VPACKSSDW Y1, Y0, Y0")
	e.f("VPACKSSDW Y3, Y2, Y2")
	e.f("VPACKSSWB Y2, Y0, Y0")
	e.f("VPERMD Y0, Y11, Y0")
	e.f("VMOVDQU Y0, (DI)")
	e.f("VPMADDUBSW Y0, Y13, Y2")
	e.f("VPMADDWD ones<>(SB), Y2, Y2")
	e.f("VPSHUFD $0x4e, Y2, Y3")
	e.f("VPADDD Y3, Y2, Y2")
	e.f("VPSHUFD $0xb1, Y2, Y3")
	e.f("VPADDD Y3, Y2, Y2")
}

func (e *emitter) round256() {
	e.f("VMOVSS X10, %d(DI)", xScale)
	e.f("LEAQ %d(DI), R8", xNeg)
	e.f("LEAQ %d(DI), R9", xSums)
	e.f("MOVL $8, AX")
	e.f("run:")
	e.round()
	e.f("VEXTRACTI128 $1, Y2, X3")
	e.f("VPADDD X3, X2, X4")
	e.f("VPEXTRW $0, X4, (R9)")
	e.f("VPUNPCKLDQ X3, X2, X2")
	e.f("VPSIGND X15, X2, X2")
	e.f("VMOVQ X2, (R8)")
	e.f("ADDQ $32, DI")
	e.f("ADDQ $128, SI")
	e.f("ADDQ $8, R8")
	e.f("ADDQ $2, R9")
	e.f("DECL AX")
	e.f("JNZ run")
	e.f("ADDQ $%d, DI", 352-256)
}

// dealConstant writes the permutation that undoes the order in which packing interleaves the halves of ymm registers.
func (e *emitter) dealConstant() {
	for i, w := range []uint64{4 << 32, 5<<32 | 1, 6<<32 | 2, 7<<32 | 3} {
		e.line("DATA deal<>+%d(SB)/8, $0x%016x", 8*i, w)
	}
	e.line("GLOBL deal<>(SB), RODATA|NOPTR, $32")
}
