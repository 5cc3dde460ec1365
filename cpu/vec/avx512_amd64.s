//go:build amd64 && !purego

#include "textflag.h"

// All but softMax, mulRows and mulAddRows take any number of elements, at least one: 16 at a time by mask K1.
//
//	CX  elements to go    R11  16    R12  ones    BX  scratch

#define COUNT(n) \
	MOVQ n, CX    \
	MOVQ $16, R11 \
	MOVL $-1, R12

#define LANES \
	MOVQ R11, BX       \
	CMPQ CX, R11       \
	CMOVQLT CX, BX     \
	BZHIL BX, R12, BX  \
	KMOVW BX, K1

#define MORE(loop) \
	SUBQ $16, CX \
	JGT loop

#define BOTH \
	MOVQ y+0(FP), DI \
	MOVQ x+8(FP), SI

// exp: see twin.go.
DATA table<>+0(SB)/4, $0xc2ae0000  // low: -87
DATA table<>+4(SB)/4, $0x42b00000  // high: 88
DATA table<>+8(SB)/4, $0x3fb8aa3b  // 1/ln 2
DATA table<>+12(SB)/4, $0x4b400000 // magic: 1.5·2²³
DATA table<>+16(SB)/4, $0xbf317200 // -ln 2, upper bits
DATA table<>+20(SB)/4, $0xb5bfbe8e // -ln 2, the rest
DATA table<>+24(SB)/4, $0x3ab688bb // q, from the highest power on
DATA table<>+28(SB)/4, $0x3c0905ed
DATA table<>+32(SB)/4, $0x3d2aaa8c
DATA table<>+36(SB)/4, $0x3e2aaa6e
DATA table<>+40(SB)/4, $0x3f000000 // 0.5
DATA table<>+44(SB)/4, $0x3f800000 // 1
GLOBL table<>(SB), RODATA|NOPTR, $48

#define LOW Z20
#define HIGH Z21
#define PERLN2 Z22
#define MAGIC Z23
#define LN2A Z24
#define LN2B Z25
#define Q4 Z26
#define Q3 Z27
#define Q2 Z28
#define Q1 Z29
#define HALF Z30
#define ONE Z31

#define CONSTANTS \
	VBROADCASTSS table<>+0(SB), LOW     \
	VBROADCASTSS table<>+4(SB), HIGH    \
	VBROADCASTSS table<>+8(SB), PERLN2  \
	VBROADCASTSS table<>+12(SB), MAGIC  \
	VBROADCASTSS table<>+16(SB), LN2A   \
	VBROADCASTSS table<>+20(SB), LN2B   \
	VBROADCASTSS table<>+24(SB), Q4     \
	VBROADCASTSS table<>+28(SB), Q3     \
	VBROADCASTSS table<>+32(SB), Q2     \
	VBROADCASTSS table<>+36(SB), Q1     \
	VBROADCASTSS table<>+40(SB), HALF   \
	VBROADCASTSS table<>+44(SB), ONE

// EXP replaces x by eˣ; t, n and mask k are scratch. MINPS and MAXPS give their last Intel operand for NaN: x.
#define EXP(x, t, n, k) \
	VCMPPS $5, LOW, x, k      \ // not below low, or NaN: else 0 at the end
	VMINPS x, HIGH, x         \
	VMAXPS x, LOW, x          \
	VMOVAPS PERLN2, t         \
	VFMADD213PS MAGIC, x, t   \ // t = x/ln 2 + magic
	VSUBPS MAGIC, t, n        \
	VFMADD231PS LN2A, n, x    \
	VFMADD231PS LN2B, n, x    \ // x = r
	VMOVAPS Q4, n             \
	VFMADD213PS Q3, x, n      \
	VFMADD213PS Q2, x, n      \
	VFMADD213PS Q1, x, n      \
	VFMADD213PS HALF, x, n    \
	VFMADD213PS ONE, x, n     \
	VFMADD213PS ONE, x, n     \
	VPSLLD $23, t, t          \
	VPADDD ONE, t, t          \ // the bits of 2ⁿ
	VMULPS.Z t, n, k, x

// TREE adds the lanes of z, which are those of y and x: halves onto halves.
#define TREE(z, y, x, y1, x1) \
	VEXTRACTF64X4 $1, z, y1  \
	VADDPS y1, y, y          \
	VEXTRACTF128 $1, y, x1   \
	VADDPS x1, x, x          \
	VPERMILPS $0x4e, x, x1   \
	VADDPS x1, x, x          \
	VPERMILPS $0xb1, x, x1   \
	VADDPS x1, x, x

// func sumAVX512(x *float32, n int) float32
TEXT ·sumAVX512(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	COUNT(n+8(FP))
	VPXORD Z0, Z0, Z0
sum:
	LANES
	VADDPS (SI), Z0, K1, Z0
	ADDQ $64, SI
	MORE(sum)
	TREE(Z0, Y0, X0, Y1, X1)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func sumSquaresAVX512(x *float32, n int) float32
TEXT ·sumSquaresAVX512(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	COUNT(n+8(FP))
	VPXORD Z0, Z0, Z0
squares:
	LANES
	VMOVUPS.Z (SI), K1, Z2
	VMULPS Z2, Z2, Z2
	VADDPS Z2, Z0, K1, Z0
	ADDQ $64, SI
	MORE(squares)
	TREE(Z0, Y0, X0, Y1, X1)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func finiteAVX512(x *float32, n int) float32
TEXT ·finiteAVX512(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	COUNT(n+8(FP))
	VPXORD Z0, Z0, Z0
	VPXORD Z4, Z4, Z4
finite:
	LANES
	VMULPS.Z (SI), Z4, K1, Z2
	VADDPS Z2, Z0, K1, Z0
	ADDQ $64, SI
	MORE(finite)
	TREE(Z0, Y0, X0, Y1, X1)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func largestAVX512(x *float32, n int) float32
TEXT ·largestAVX512(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	COUNT(n+8(FP))
	VPXORD Z0, Z0, Z0
	VPTERNLOGD $0xff, Z4, Z4, Z4
	VPSRLD $1, Z4, Z4 // without the sign
largest:
	LANES
	VPANDD.Z (SI), Z4, K1, Z2
	VPMAXUD Z2, Z0, Z0
	ADDQ $64, SI
	MORE(largest)
	VEXTRACTI64X4 $1, Z0, Y1
	VPMAXUD Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPMAXUD X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func addAVX512(y, a, b *float32, n int)
TEXT ·addAVX512(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	COUNT(n+24(FP))
add:
	LANES
	VMOVUPS.Z (SI), K1, Z0
	VADDPS.Z (DX), Z0, K1, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $64, DI
	MORE(add)
	VZEROUPPER
	RET

// func mulAVX512(y, a, b *float32, n int)
TEXT ·mulAVX512(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	COUNT(n+24(FP))
mul:
	LANES
	VMOVUPS.Z (SI), K1, Z0
	VMULPS.Z (DX), Z0, K1, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $64, DI
	MORE(mul)
	VZEROUPPER
	RET

// func scaleAVX512(y, x *float32, s float32, n int)
TEXT ·scaleAVX512(SB), NOSPLIT, $0-32
	BOTH
	VBROADCASTSS s+16(FP), Z4
	COUNT(n+24(FP))
scale:
	LANES
	VMULPS.Z (SI), Z4, K1, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	MORE(scale)
	VZEROUPPER
	RET

// func divideAVX512(y, x *float32, s float32, n int)
TEXT ·divideAVX512(SB), NOSPLIT, $0-32
	BOTH
	VBROADCASTSS s+16(FP), Z4
	COUNT(n+24(FP))
divide:
	LANES
	VMOVUPS.Z (SI), K1, Z0
	VDIVPS Z4, Z0, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	MORE(divide)
	VZEROUPPER
	RET

// func mergeAVX512(acc, o *float32, alpha, beta float32, n int)
TEXT ·mergeAVX512(SB), NOSPLIT, $0-32
	MOVQ acc+0(FP), DI
	MOVQ o+8(FP), SI
	VBROADCASTSS alpha+16(FP), Z4
	VBROADCASTSS beta+20(FP), Z5
	COUNT(n+24(FP))
merge:
	LANES
	VMULPS.Z (DI), Z4, K1, Z0
	VMULPS.Z (SI), Z5, K1, Z1
	VADDPS Z1, Z0, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	MORE(merge)
	VZEROUPPER
	RET

// func rotateAVX512(a, b, cos, sin *float32, n int)
TEXT ·rotateAVX512(SB), NOSPLIT, $0-40
	MOVQ a+0(FP), DI
	MOVQ b+8(FP), SI
	MOVQ cos+16(FP), R8
	MOVQ sin+24(FP), R9
	COUNT(n+32(FP))
	XORQ AX, AX
rotate:
	LANES
	VMOVUPS.Z (DI)(AX*4), K1, Z0
	VMOVUPS.Z (SI)(AX*4), K1, Z1
	VMOVUPS.Z (R8)(AX*4), K1, Z2
	VMOVUPS.Z (R9)(AX*4), K1, Z3
	VMULPS Z2, Z0, Z4 // a·cos
	VMULPS Z3, Z1, Z5 // b·sin
	VMULPS Z3, Z0, Z6 // a·sin
	VMULPS Z2, Z1, Z7 // b·cos
	VSUBPS Z5, Z4, Z4
	VADDPS Z7, Z6, Z6
	VMOVUPS Z4, K1, (DI)(AX*4)
	VMOVUPS Z6, K1, (SI)(AX*4)
	ADDQ $16, AX
	MORE(rotate)
	VZEROUPPER
	RET

// func expAVX512(y, x *float32, n int)
TEXT ·expAVX512(SB), NOSPLIT, $0-24
	BOTH
	COUNT(n+16(FP))
	CONSTANTS
exp:
	LANES
	VMOVUPS.Z (SI), K1, Z0
	EXP(Z0, Z1, Z2, K2)
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	MORE(exp)
	VZEROUPPER
	RET

// func gateAVX512(y, x *float32, c1, c3 float32, n int)
TEXT ·gateAVX512(SB), NOSPLIT, $0-32
	BOTH
	VBROADCASTSS c1+16(FP), Z14
	VBROADCASTSS c3+20(FP), Z15
	COUNT(n+24(FP))
	CONSTANTS
	VPXORD Z12, Z12, Z12
gate:
	LANES
	VMOVUPS.Z (SI), K1, Z5
	VMULPS Z5, Z5, Z0
	VMULPS Z15, Z0, Z0
	VADDPS Z14, Z0, Z0
	VMULPS Z0, Z5, Z0 // z
	VSUBPS Z0, Z12, Z0
	EXP(Z0, Z1, Z2, K2)
	VADDPS Z0, ONE, Z0
	VDIVPS Z0, Z5, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	MORE(gate)
	VZEROUPPER
	RET

// func softCapAVX512(y, x *float32, limit, twice float32, n int)
TEXT ·softCapAVX512(SB), NOSPLIT, $0-32
	BOTH
	VBROADCASTSS limit+16(FP), Z14
	VBROADCASTSS twice+20(FP), Z15
	COUNT(n+24(FP))
	CONSTANTS
	VADDPS ONE, ONE, Z13
cap:
	LANES
	VMULPS.Z (SI), Z15, K1, Z0
	EXP(Z0, Z1, Z2, K2)
	VADDPS Z0, ONE, Z0
	VDIVPS Z0, Z13, Z0
	VSUBPS Z0, ONE, Z0
	VMULPS Z0, Z14, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	MORE(cap)
	VZEROUPPER
	RET

// func softMaxAVX512(x *[64]float32) (top, sum float32)
TEXT ·softMaxAVX512(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VMOVUPS 128(SI), Z2
	VMOVUPS 192(SI), Z3
	VMAXPS Z1, Z0, Z4
	VMAXPS Z3, Z2, Z5
	VMAXPS Z5, Z4, Z4
	VEXTRACTF64X4 $1, Z4, Y5
	VMAXPS Y5, Y4, Y4
	VEXTRACTF128 $1, Y4, X5
	VMAXPS X5, X4, X4
	VPERMILPS $0x4e, X4, X5
	VMAXPS X5, X4, X4
	VPERMILPS $0xb1, X4, X5
	VMAXPS X5, X4, X4
	VMOVSS X4, top+8(FP)
	VBROADCASTSS X4, Z4
	CONSTANTS
	VSUBPS Z4, Z0, Z0
	VSUBPS Z4, Z1, Z1
	VSUBPS Z4, Z2, Z2
	VSUBPS Z4, Z3, Z3
	EXP(Z0, Z6, Z7, K1)
	EXP(Z1, Z8, Z9, K2)
	EXP(Z2, Z10, Z11, K3)
	EXP(Z3, Z12, Z13, K4)
	VMOVUPS Z0, (SI)
	VMOVUPS Z1, 64(SI)
	VMOVUPS Z2, 128(SI)
	VMOVUPS Z3, 192(SI)
	VADDPS Z1, Z0, Z0
	VADDPS Z2, Z0, Z0
	VADDPS Z3, Z0, Z0
	TREE(Z0, Y0, X0, Y1, X1)
	VMOVSS X0, sum+12(FP)
	VZEROUPPER
	RET

// func mulRowsAVX512(x *float32, s *[64]float32, rows int)
TEXT ·mulRowsAVX512(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ s+8(FP), SI
	MOVQ rows+16(FP), CX
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VMOVUPS 128(SI), Z2
	VMOVUPS 192(SI), Z3
rows:
	VMULPS (DI), Z0, Z4
	VMULPS 64(DI), Z1, Z5
	VMULPS 128(DI), Z2, Z6
	VMULPS 192(DI), Z3, Z7
	VMOVUPS Z4, (DI)
	VMOVUPS Z5, 64(DI)
	VMOVUPS Z6, 128(DI)
	VMOVUPS Z7, 192(DI)
	ADDQ $256, DI
	DECQ CX
	JNZ rows
	VZEROUPPER
	RET

// func mulAddRowsAVX512(y, x *float32, s *[64]float32, rows int)
TEXT ·mulAddRowsAVX512(SB), NOSPLIT, $0-32
	BOTH
	MOVQ s+16(FP), DX
	MOVQ rows+24(FP), CX
	VMOVUPS (DX), Z0
	VMOVUPS 64(DX), Z1
	VMOVUPS 128(DX), Z2
	VMOVUPS 192(DX), Z3
rows:
	VMULPS (SI), Z0, Z4
	VMULPS 64(SI), Z1, Z5
	VMULPS 128(SI), Z2, Z6
	VMULPS 192(SI), Z3, Z7
	VADDPS (DI), Z4, Z4
	VADDPS 64(DI), Z5, Z5
	VADDPS 128(DI), Z6, Z6
	VADDPS 192(DI), Z7, Z7
	VMOVUPS Z4, (DI)
	VMOVUPS Z5, 64(DI)
	VMOVUPS Z6, 128(DI)
	VMOVUPS Z7, 192(DI)
	ADDQ $256, DI
	ADDQ $256, SI
	DECQ CX
	JNZ rows
	VZEROUPPER
	RET

// func halveAVX512(y *uint16, x *float32, n int)
TEXT ·halveAVX512(SB), NOSPLIT, $0-24
	BOTH
	COUNT(n+16(FP))
halve:
	LANES
	VMOVUPS.Z (SI), K1, Z0
	VCVTPS2PH $0, Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $32, DI
	MORE(halve)
	VZEROUPPER
	RET

// func widenAVX512(y *float32, x *uint16, n int)
TEXT ·widenAVX512(SB), NOSPLIT, $0-24
	BOTH
	COUNT(n+16(FP))
widen:
	LANES
	VCVTPH2PS.Z (SI), K1, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	MORE(widen)
	VZEROUPPER
	RET

// func roundAVX512(y *int8, x *float32, s float32, n int)
TEXT ·roundAVX512(SB), NOSPLIT, $0-32
	BOTH
	VBROADCASTSS s+16(FP), Z4
	COUNT(n+24(FP))
round:
	LANES
	VMULPS.Z (SI), Z4, K1, Z0
	VCVTPS2DQ Z0, Z0
	VPMOVSDB Z0, K1, (DI)
	ADDQ $64, SI
	ADDQ $16, DI
	MORE(round)
	VZEROUPPER
	RET

// func widenBytesAVX512(y *float32, x *int8, n int)
TEXT ·widenBytesAVX512(SB), NOSPLIT, $0-24
	BOTH
	COUNT(n+16(FP))
bytes:
	LANES
	VPMOVSXBD.Z (SI), K1, Z0
	VCVTDQ2PS Z0, Z0
	VMOVUPS Z0, K1, (DI)
	ADDQ $16, SI
	ADDQ $64, DI
	MORE(bytes)
	VZEROUPPER
	RET
