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
	e.Enter(name, fmt.Sprintf("quantizer for By%d", n), 0, quantizer)
	e.Load("dst", "DI")
	e.Load("src", "SI")
	e.Load("n", "CX")
	e.F("VPCMPEQD Y15, Y15, Y15") // -1
	e.F("VPSRLD $1, Y15, Y14")    // without the sign
	e.F("VPABSB Y15, Y13")        // bytes of 1
	e.F("MOVL $0x%08x, AX", math.Float32bits(127))
	e.F("VMOVD AX, X12")
	e.F("VMOVDQU deal<>(SB), Y11")
	e.F("")
	e.F("block:")
	e.magnitude(n)
	if n == 32 {
		e.round()
		e.F("VPERM2I128 $1, Y2, Y2, Y3")
		e.F("VPADDD Y3, Y2, Y2")
		e.F("VPSIGND Y15, Y2, Y2")
		e.F("VMOVD X2, 36(DI)")
		e.F("VMOVSS X10, 32(DI)")
		e.F("ADDQ $40, DI")
		e.F("ADDQ $128, SI")
	} else {
		e.round256()
	}
	e.F("DECQ CX")
	e.F("JNZ block")
	e.F("MOVB $1, ret+24(FP)")
	e.F("VZEROUPPER")
	e.F("RET")
	e.F("refuse:")
	e.F("MOVB $0, ret+24(FP)")
	e.F("VZEROUPPER")
	e.F("RET")
	return name
}

// magnitude sets Y9 to 127/amax in all lanes and X10 to its inverse, or both to zero below 2⁻¹⁰⁰. Magnitudes order
// like their bits, and NaN above infinity.
func (e *emitter) magnitude(n int) {
	e.F("VPAND (SI), Y14, Y0")
	for at := 32; at < 128; at += 32 {
		e.F("VPAND %d(SI), Y14, Y1", at)
		e.F("VPMAXUD Y1, Y0, Y0")
	}
	if n == 256 {
		e.F("LEAQ 128(SI), R8")
		e.F("MOVL $7, AX")
		e.F("largest:")
		for i := range 4 {
			e.F("VPAND %d(R8), Y14, Y%d", 32*i, 1+i)
		}
		e.F("VPMAXUD Y1, Y2, Y1")
		e.F("VPMAXUD Y3, Y4, Y3")
		e.F("VPMAXUD Y1, Y0, Y0")
		e.F("VPMAXUD Y3, Y0, Y0")
		e.F("ADDQ $128, R8")
		e.F("DECL AX")
		e.F("JNZ largest")
	}
	e.F("VEXTRACTI128 $1, Y0, X1")
	e.F("VPMAXUD X1, X0, X0")
	e.F("VPSHUFD $0x4e, X0, X1")
	e.F("VPMAXUD X1, X0, X0")
	e.F("VPSHUFD $0xb1, X0, X1")
	e.F("VPMAXUD X1, X0, X0")
	e.F("VMOVD X0, AX")
	e.F("VPXOR Y9, Y9, Y9")
	e.F("VPXOR X10, X10, X10")
	e.F("CMPL AX, $0x7f800000")
	e.F("JAE refuse")
	e.F("CMPL AX, $0x%08x", math.Float32bits(float32(math.Ldexp(1, -100))))
	e.F("JB scaled")
	e.F("VDIVSS X0, X12, X9")
	e.F("MOVL $0x%08x, AX", math.Float32bits(1))
	e.F("VMOVD AX, X10")
	e.F("VDIVSS X9, X10, X10")
	e.F("VBROADCASTSS X9, Y9")
	e.F("scaled:")
}

// round quantises 32 values at SI to DI, and sets Y2 to their sums: of the first 16 in the low half, of the others
// in the high half, in all words.
func (e *emitter) round() {
	for i := range 4 {
		e.F("VMULPS %d(SI), Y9, Y%d", 32*i, i)
	}
	for i := range 4 {
		e.F("VCVTPS2DQ Y%d, Y%d", i, i)
	}
	e.F("VPACKSSDW Y1, Y0, Y0")
	e.F("VPACKSSDW Y3, Y2, Y2")
	e.F("VPACKSSWB Y2, Y0, Y0")
	e.F("VPERMD Y0, Y11, Y0")
	e.F("VMOVDQU Y0, (DI)")
	e.F("VPMADDUBSW Y0, Y13, Y2")
	e.F("VPMADDWD ones<>(SB), Y2, Y2")
	e.F("VPSHUFD $0x4e, Y2, Y3")
	e.F("VPADDD Y3, Y2, Y2")
	e.F("VPSHUFD $0xb1, Y2, Y3")
	e.F("VPADDD Y3, Y2, Y2")
}

func (e *emitter) round256() {
	e.F("VMOVSS X10, %d(DI)", xScale)
	e.F("LEAQ %d(DI), R8", xNeg)
	e.F("LEAQ %d(DI), R9", xSums)
	e.F("MOVL $8, AX")
	e.F("run:")
	e.round()
	e.F("VEXTRACTI128 $1, Y2, X3")
	e.F("VPADDD X3, X2, X4")
	e.F("VPEXTRW $0, X4, (R9)")
	e.F("VPUNPCKLDQ X3, X2, X2")
	e.F("VPSIGND X15, X2, X2")
	e.F("VMOVQ X2, (R8)")
	e.F("ADDQ $32, DI")
	e.F("ADDQ $128, SI")
	e.F("ADDQ $8, R8")
	e.F("ADDQ $2, R9")
	e.F("DECL AX")
	e.F("JNZ run")
	e.F("ADDQ $%d, DI", 352-256)
}

// dealConstant writes the permutation that undoes the order in which packing interleaves the halves of ymm registers.
func (e *emitter) dealConstant() { e.Data("deal", 4<<32, 5<<32|1, 6<<32|2, 7<<32|3) }
