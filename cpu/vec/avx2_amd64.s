//go:build amd64 && !purego

#include "textflag.h"

// Constants, each for 8 lanes. exp: see twin.go.
#define REP(at, v) \
	DATA const<>+at+0(SB)/4, $v; DATA const<>+at+4(SB)/4, $v; \
	DATA const<>+at+8(SB)/4, $v; DATA const<>+at+12(SB)/4, $v; \
	DATA const<>+at+16(SB)/4, $v; DATA const<>+at+20(SB)/4, $v; \
	DATA const<>+at+24(SB)/4, $v; DATA const<>+at+28(SB)/4, $v

REP(0, 0xc2ae0000)   // low: -87
REP(32, 0x42b00000)  // high: 88
REP(64, 0x3fb8aa3b)  // 1/ln 2
REP(96, 0x4b400000)  // magic: 1.5·2²³
REP(128, 0xbf317200) // -ln 2, upper bits
REP(160, 0xb5bfbe8e) // -ln 2, the rest
REP(192, 0x3ab688bb) // q, from the highest power on
REP(224, 0x3c0905ed)
REP(256, 0x3d2aaa8c)
REP(288, 0x3e2aaa6e)
REP(320, 0x3f000000) // 0.5
REP(352, 0x3f800000) // 1
REP(384, 0x80000000) // sign
GLOBL const<>(SB), RODATA|NOPTR, $416

#define LOW const<>+0(SB)
#define HIGH const<>+32(SB)
#define PERLN2 const<>+64(SB)
#define MAGIC const<>+96(SB)
#define LN2A const<>+128(SB)
#define LN2B const<>+160(SB)
#define Q4 const<>+192(SB)
#define Q3 const<>+224(SB)
#define Q2 const<>+256(SB)
#define Q1 const<>+288(SB)
#define HALF const<>+320(SB)
#define ONE const<>+352(SB)
#define SIGN const<>+384(SB)

// EXP replaces x by eˣ; t, n, m are scratch. MINPS and MAXPS give their last Intel operand for NaN: x.
#define EXP(x, t, n, m) \
	VCMPPS $1, LOW, x, m            \ // x < low: 0 at the end
	VMOVUPS HIGH, t                 \
	VMINPS x, t, x                  \
	VMOVUPS LOW, t                  \
	VMAXPS x, t, x                  \
	VMOVUPS PERLN2, t               \
	VFMADD213PS MAGIC, x, t         \ // t = x/ln 2 + magic
	VSUBPS MAGIC, t, n              \
	VFMADD231PS LN2A, n, x          \
	VFMADD231PS LN2B, n, x          \ // x = r
	VMOVUPS Q4, n                   \
	VFMADD213PS Q3, x, n            \
	VFMADD213PS Q2, x, n            \
	VFMADD213PS Q1, x, n            \
	VFMADD213PS HALF, x, n          \
	VFMADD213PS ONE, x, n           \
	VFMADD213PS ONE, x, n           \
	VPSLLD $23, t, t                \
	VPADDD ONE, t, t                \ // the bits of 2ⁿ
	VMULPS t, n, x                  \
	VANDNPS x, m, x

// func sumAVX2(l *[16]float32, x *float32, n int)
TEXT ·sumAVX2(SB), NOSPLIT, $0-24
	MOVQ l+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
sum:
	VADDPS (SI), Y0, Y0
	VADDPS 32(SI), Y1, Y1
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ sum
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VZEROUPPER
	RET

// func sumSquaresAVX2(l *[16]float32, x *float32, n int)
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-24
	MOVQ l+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
squares:
	VMOVUPS (SI), Y2
	VMOVUPS 32(SI), Y3
	VMULPS Y2, Y2, Y2
	VMULPS Y3, Y3, Y3
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ squares
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VZEROUPPER
	RET

// func finiteAVX2(l *[16]float32, x *float32, n int)
TEXT ·finiteAVX2(SB), NOSPLIT, $0-24
	MOVQ l+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y4, Y4, Y4
finite:
	VMULPS (SI), Y4, Y2
	VMULPS 32(SI), Y4, Y3
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ finite
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VZEROUPPER
	RET

// func addAVX2(y, a, b *float32, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
add:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VADDPS (DX), Y0, Y0
	VADDPS 32(DX), Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ add
	VZEROUPPER
	RET

// func mulAVX2(y, a, b *float32, n int)
TEXT ·mulAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
mul:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMULPS (DX), Y0, Y0
	VMULPS 32(DX), Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DX
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ mul
	VZEROUPPER
	RET

// func scaleAVX2(y, x *float32, s float32, n int)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS s+16(FP), Y4
	MOVQ n+24(FP), CX
scale:
	VMULPS (SI), Y4, Y0
	VMULPS 32(SI), Y4, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ scale
	VZEROUPPER
	RET

// func divideAVX2(y, x *float32, s float32, n int)
TEXT ·divideAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS s+16(FP), Y4
	MOVQ n+24(FP), CX
divide:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VDIVPS Y4, Y0, Y0
	VDIVPS Y4, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ divide
	VZEROUPPER
	RET

// func mergeAVX2(acc, o *float32, alpha, beta float32, n int)
TEXT ·mergeAVX2(SB), NOSPLIT, $0-32
	MOVQ acc+0(FP), DI
	MOVQ o+8(FP), SI
	VBROADCASTSS alpha+16(FP), Y4
	VBROADCASTSS beta+20(FP), Y5
	MOVQ n+24(FP), CX
merge:
	VMULPS (DI), Y4, Y0
	VMULPS 32(DI), Y4, Y1
	VMULPS (SI), Y5, Y2
	VMULPS 32(SI), Y5, Y3
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ merge
	VZEROUPPER
	RET

// func rotateAVX2(a, b, cos, sin *float32, n int)
TEXT ·rotateAVX2(SB), NOSPLIT, $0-40
	MOVQ a+0(FP), DI
	MOVQ b+8(FP), SI
	MOVQ cos+16(FP), R8
	MOVQ sin+24(FP), R9
	MOVQ n+32(FP), CX
	XORQ AX, AX
rotate:
	VMOVUPS (DI)(AX*4), Y0
	VMOVUPS (SI)(AX*4), Y1
	VMOVUPS (R8)(AX*4), Y2
	VMOVUPS (R9)(AX*4), Y3
	VMULPS Y2, Y0, Y4 // a·cos
	VMULPS Y3, Y1, Y5 // b·sin
	VMULPS Y3, Y0, Y6 // a·sin
	VMULPS Y2, Y1, Y7 // b·cos
	VSUBPS Y5, Y4, Y4
	VADDPS Y7, Y6, Y6
	VMOVUPS Y4, (DI)(AX*4)
	VMOVUPS Y6, (SI)(AX*4)
	ADDQ $8, AX
	CMPQ AX, CX
	JLT rotate
	VZEROUPPER
	RET

// func expAVX2(y, x *float32, n int)
TEXT ·expAVX2(SB), NOSPLIT, $0-24
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
exp:
	VMOVUPS (SI), Y0
	EXP(Y0, Y1, Y2, Y3)
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ exp
	VZEROUPPER
	RET

// func gateAVX2(y, x *float32, c1, c3 float32, n int)
TEXT ·gateAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS c1+16(FP), Y14
	VBROADCASTSS c3+20(FP), Y15
	MOVQ n+24(FP), CX
	VMOVUPS SIGN, Y13
	VMOVUPS ONE, Y12
gate:
	VMOVUPS (SI), Y5
	VMULPS Y5, Y5, Y0
	VMULPS Y15, Y0, Y0
	VADDPS Y14, Y0, Y0
	VMULPS Y0, Y5, Y0 // z
	VXORPS Y13, Y0, Y0
	EXP(Y0, Y1, Y2, Y3)
	VADDPS Y0, Y12, Y0
	VDIVPS Y0, Y5, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ gate
	VZEROUPPER
	RET

// func softCapAVX2(y, x *float32, limit, twice float32, n int)
TEXT ·softCapAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS limit+16(FP), Y14
	VBROADCASTSS twice+20(FP), Y15
	MOVQ n+24(FP), CX
	VMOVUPS ONE, Y12
	VADDPS Y12, Y12, Y13
cap:
	VMULPS (SI), Y15, Y0
	EXP(Y0, Y1, Y2, Y3)
	VADDPS Y0, Y12, Y0
	VDIVPS Y0, Y13, Y0
	VSUBPS Y0, Y12, Y0
	VMULPS Y0, Y14, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ cap
	VZEROUPPER
	RET

// func softMaxAVX2(l *[16]float32, x *[64]float32) float32
TEXT ·softMaxAVX2(SB), NOSPLIT, $0-20
	MOVQ l+0(FP), DI
	MOVQ x+8(FP), SI
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMAXPS 64(SI), Y0, Y0
	VMAXPS 96(SI), Y1, Y1
	VMAXPS 128(SI), Y0, Y0
	VMAXPS 160(SI), Y1, Y1
	VMAXPS 192(SI), Y0, Y0
	VMAXPS 224(SI), Y1, Y1
	VMAXPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VBROADCASTSS X0, Y15
	VXORPS Y13, Y13, Y13
	VXORPS Y14, Y14, Y14
	MOVQ $4, CX
weights:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y4
	VSUBPS Y15, Y0, Y0
	VSUBPS Y15, Y4, Y4
	EXP(Y0, Y1, Y2, Y3)
	EXP(Y4, Y5, Y6, Y7)
	VMOVUPS Y0, (SI)
	VMOVUPS Y4, 32(SI)
	VADDPS Y0, Y13, Y13
	VADDPS Y4, Y14, Y14
	ADDQ $64, SI
	DECQ CX
	JNZ weights
	VMOVUPS Y13, (DI)
	VMOVUPS Y14, 32(DI)
	VZEROUPPER
	RET

// func halveAVX2(y *uint16, x *float32, n int)
TEXT ·halveAVX2(SB), NOSPLIT, $0-24
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
halve:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VCVTPS2PH $0, Y0, X0
	VCVTPS2PH $0, Y1, X1
	VMOVUPS X0, (DI)
	VMOVUPS X1, 16(DI)
	ADDQ $64, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JNZ halve
	VZEROUPPER
	RET

// func widenAVX2(y *float32, x *uint16, n int)
TEXT ·widenAVX2(SB), NOSPLIT, $0-24
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
widen:
	VCVTPH2PS (SI), Y0
	VCVTPH2PS 16(SI), Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ widen
	VZEROUPPER
	RET

// func rotatePairsAVX2(x, cos, sin *float32, n int)
TEXT ·rotatePairsAVX2(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ cos+8(FP), SI
	MOVQ sin+16(FP), DX
	MOVQ n+24(FP), CX
pairs:
	VPMOVZXDQ (SI), Y2
	VPMOVZXDQ (DX), Y3
	VMOVSLDUP Y2, Y2 // each cos twice
	VMOVSLDUP Y3, Y3
	VMOVUPS (DI), Y0
	VPERMILPS $0xb1, Y0, Y1 // the points' other halves
	VMULPS Y2, Y0, Y0
	VMULPS Y3, Y1, Y1
	VADDSUBPS Y1, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	ADDQ $16, SI
	ADDQ $16, DX
	SUBQ $8, CX
	JNZ pairs
	VZEROUPPER
	RET

// func largestAVX2(x *float32, n int) float32
TEXT ·largestAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VPCMPEQD Y4, Y4, Y4
	VPSRLD $1, Y4, Y4 // without the sign
largest:
	VPAND (SI), Y4, Y1
	VPAND 32(SI), Y4, Y2
	VPMAXUD Y1, Y0, Y0
	VPMAXUD Y2, Y0, Y0
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ largest
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPMAXUD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPMAXUD X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func roundAVX2(y *int8, x *float32, s float32, n int)
TEXT ·roundAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS s+16(FP), Y4
	MOVQ n+24(FP), CX
round:
	VMULPS (SI), Y4, Y0
	VMULPS 32(SI), Y4, Y1
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VPACKSSDW Y1, Y0, Y0
	VPERMQ $0xd8, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKSSWB X1, X0, X0
	VMOVDQU X0, (DI)
	ADDQ $64, SI
	ADDQ $16, DI
	SUBQ $16, CX
	JNZ round
	VZEROUPPER
	RET

// func widenBytesAVX2(y *float32, x *int8, n int)
TEXT ·widenBytesAVX2(SB), NOSPLIT, $0-24
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
bytes:
	VPMOVSXBD (SI), Y0
	VPMOVSXBD 8(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ bytes
	VZEROUPPER
	RET

// func mulRowsAVX2(x *float32, s *[64]float32, rows int)
TEXT ·mulRowsAVX2(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ s+8(FP), SI
	MOVQ rows+16(FP), CX
	SHLQ $3, CX // vectors
	XORQ AX, AX
vectors:
	VMOVUPS (SI)(AX*1), Y0
	VMULPS (DI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, AX
	ANDQ $255, AX
	DECQ CX
	JNZ vectors
	VZEROUPPER
	RET

// func mulAddRowsAVX2(y, x *float32, s *[64]float32, rows int)
TEXT ·mulAddRowsAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ s+16(FP), DX
	MOVQ rows+24(FP), CX
	SHLQ $3, CX // vectors
	XORQ AX, AX
vectors:
	VMOVUPS (DX)(AX*1), Y0
	VMULPS (SI), Y0, Y0
	VADDPS (DI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, AX
	ANDQ $255, AX
	DECQ CX
	JNZ vectors
	VZEROUPPER
	RET
