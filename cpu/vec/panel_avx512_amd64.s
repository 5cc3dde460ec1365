//go:build amd64 && !purego

#include "textflag.h"

// Offsets in panel: a 0, c 32, b 64, bStride 72, k 80, mask 88. Up to 64 columns: four accumulators for each row.
//
//	R8-R11  rows of A   SI  row of B   DX  its stride   AX  k   CX  end of k
//	Z0-Z15  accumulators, four a row   Z16-Z19  a row of B   Z20  an element of A   K1-K4  columns

#define START \
	MOVQ p+0(FP), DI  \
	MOVQ 64(DI), SI   \
	MOVQ 72(DI), DX   \
	MOVQ 80(DI), CX   \
	MOVQ 88(DI), AX   \
	KMOVW AX, K1      \
	SHRQ $16, AX      \
	KMOVW AX, K2      \
	SHRQ $16, AX      \
	KMOVW AX, K3      \
	SHRQ $16, AX      \
	KMOVW AX, K4      \
	XORQ AX, AX

#define ROW(n, a, s, t, u, v) \
	MOVQ (8*n)(DI), a \
	VPXORD s, s, s    \
	VPXORD t, t, t    \
	VPXORD u, u, u    \
	VPXORD v, v, v

#define WHOLE \
	VMOVUPS.Z (SI), K1, Z16    \
	VMOVUPS.Z 64(SI), K2, Z17  \
	VMOVUPS.Z 128(SI), K3, Z18 \
	VMOVUPS.Z 192(SI), K4, Z19

#define HALVES \
	VCVTPH2PS.Z (SI), K1, Z16   \
	VCVTPH2PS.Z 32(SI), K2, Z17 \
	VCVTPH2PS.Z 64(SI), K3, Z18 \
	VCVTPH2PS.Z 96(SI), K4, Z19

#define STEP(a, s, t, u, v) \
	VBROADCASTSS (a)(AX*4), Z20 \
	VFMADD231PS Z16, Z20, s     \
	VFMADD231PS Z17, Z20, t     \
	VFMADD231PS Z18, Z20, u     \
	VFMADD231PS Z19, Z20, v

#define NEXT(loop) \
	ADDQ DX, SI \
	INCQ AX     \
	CMPQ AX, CX \
	JLT loop    \
	VPXORD Z20, Z20, Z20

#define STORE(n, s, t, u, v) \
	MOVQ (32+8*n)(DI), R8     \
	VADDPS Z20, s, s          \
	VADDPS Z20, t, t          \
	VADDPS Z20, u, u          \
	VADDPS Z20, v, v          \
	VMOVUPS s, K1, (R8)       \
	VMOVUPS t, K2, 64(R8)     \
	VMOVUPS u, K3, 128(R8)    \
	VMOVUPS v, K4, 192(R8)

#define PANEL1(load, loop) \
	START                        \
	ROW(0, R8, Z0, Z1, Z2, Z3)   \
loop:                            \
	load                         \
	STEP(R8, Z0, Z1, Z2, Z3)     \
	NEXT(loop)                   \
	STORE(0, Z0, Z1, Z2, Z3)     \
	VZEROUPPER                   \
	RET

#define PANEL2(load, loop) \
	START                        \
	ROW(0, R8, Z0, Z1, Z2, Z3)   \
	ROW(1, R9, Z4, Z5, Z6, Z7)   \
loop:                            \
	load                         \
	STEP(R8, Z0, Z1, Z2, Z3)     \
	STEP(R9, Z4, Z5, Z6, Z7)     \
	NEXT(loop)                   \
	STORE(0, Z0, Z1, Z2, Z3)     \
	STORE(1, Z4, Z5, Z6, Z7)     \
	VZEROUPPER                   \
	RET

#define PANEL4(load, loop) \
	START                           \
	ROW(0, R8, Z0, Z1, Z2, Z3)      \
	ROW(1, R9, Z4, Z5, Z6, Z7)      \
	ROW(2, R10, Z8, Z9, Z10, Z11)   \
	ROW(3, R11, Z12, Z13, Z14, Z15) \
loop:                               \
	load                            \
	STEP(R8, Z0, Z1, Z2, Z3)        \
	STEP(R9, Z4, Z5, Z6, Z7)        \
	STEP(R10, Z8, Z9, Z10, Z11)     \
	STEP(R11, Z12, Z13, Z14, Z15)   \
	NEXT(loop)                      \
	STORE(0, Z0, Z1, Z2, Z3)        \
	STORE(1, Z4, Z5, Z6, Z7)        \
	STORE(2, Z8, Z9, Z10, Z11)      \
	STORE(3, Z12, Z13, Z14, Z15)    \
	VZEROUPPER                      \
	RET

// func panel1AVX512(p *panel)
TEXT ·panel1AVX512(SB), NOSPLIT, $0-8
	PANEL1(WHOLE, k1)

// func panel2AVX512(p *panel)
TEXT ·panel2AVX512(SB), NOSPLIT, $0-8
	PANEL2(WHOLE, k2)

// func panel4AVX512(p *panel)
TEXT ·panel4AVX512(SB), NOSPLIT, $0-8
	PANEL4(WHOLE, k4)

// func panelHalf1AVX512(p *panel)
TEXT ·panelHalf1AVX512(SB), NOSPLIT, $0-8
	PANEL1(HALVES, h1)

// func panelHalf2AVX512(p *panel)
TEXT ·panelHalf2AVX512(SB), NOSPLIT, $0-8
	PANEL2(HALVES, h2)

// func panelHalf4AVX512(p *panel)
TEXT ·panelHalf4AVX512(SB), NOSPLIT, $0-8
	PANEL4(HALVES, h4)
