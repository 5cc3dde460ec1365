//go:build amd64 && !purego

#include "textflag.h"

// Offsets in panel: a 0, c 32, b 64, bStride 72, k 80. 16 columns: two accumulators for each row.
//
//	R8-R11  rows of A   SI  row of B   DX  its stride   AX  k   CX  end of k
//	Y0-Y7   accumulators, two a row    Y8, Y9  a row of B    Y10  an element of A

#define START \
	MOVQ p+0(FP), DI   \
	MOVQ 64(DI), SI    \
	MOVQ 72(DI), DX    \
	MOVQ 80(DI), CX    \
	XORQ AX, AX

#define ROW(n, a, s, t) \
	MOVQ (8*n)(DI), a \
	VXORPS s, s, s    \
	VXORPS t, t, t

#define WHOLE \
	VMOVUPS (SI), Y8   \
	VMOVUPS 32(SI), Y9

#define HALVES \
	VCVTPH2PS (SI), Y8   \
	VCVTPH2PS 16(SI), Y9

#define STEP(a, s, t) \
	VBROADCASTSS (a)(AX*4), Y10 \
	VFMADD231PS Y8, Y10, s      \
	VFMADD231PS Y9, Y10, t

#define NEXT(loop) \
	ADDQ DX, SI \
	INCQ AX     \
	CMPQ AX, CX \
	JLT loop    \
	VXORPS Y10, Y10, Y10

#define STORE(n, s, t) \
	MOVQ (32+8*n)(DI), R8 \
	VADDPS Y10, s, s      \
	VADDPS Y10, t, t      \
	VMOVUPS s, (R8)       \
	VMOVUPS t, 32(R8)

#define PANEL1(load, loop) \
	START              \
	ROW(0, R8, Y0, Y1) \
loop:                  \
	load               \
	STEP(R8, Y0, Y1)   \
	NEXT(loop)         \
	STORE(0, Y0, Y1)   \
	VZEROUPPER         \
	RET

#define PANEL2(load, loop) \
	START              \
	ROW(0, R8, Y0, Y1) \
	ROW(1, R9, Y2, Y3) \
loop:                  \
	load               \
	STEP(R8, Y0, Y1)   \
	STEP(R9, Y2, Y3)   \
	NEXT(loop)         \
	STORE(0, Y0, Y1)   \
	STORE(1, Y2, Y3)   \
	VZEROUPPER         \
	RET

#define PANEL4(load, loop) \
	START               \
	ROW(0, R8, Y0, Y1)  \
	ROW(1, R9, Y2, Y3)  \
	ROW(2, R10, Y4, Y5) \
	ROW(3, R11, Y6, Y7) \
loop:                   \
	load                \
	STEP(R8, Y0, Y1)    \
	STEP(R9, Y2, Y3)    \
	STEP(R10, Y4, Y5)   \
	STEP(R11, Y6, Y7)   \
	NEXT(loop)          \
	STORE(0, Y0, Y1)    \
	STORE(1, Y2, Y3)    \
	STORE(2, Y4, Y5)    \
	STORE(3, Y6, Y7)    \
	VZEROUPPER          \
	RET

// func panel1AVX2(p *panel)
TEXT ·panel1AVX2(SB), NOSPLIT, $0-8
	PANEL1(WHOLE, k1)

// func panel2AVX2(p *panel)
TEXT ·panel2AVX2(SB), NOSPLIT, $0-8
	PANEL2(WHOLE, k2)

// func panel4AVX2(p *panel)
TEXT ·panel4AVX2(SB), NOSPLIT, $0-8
	PANEL4(WHOLE, k4)

// func panelHalf1AVX2(p *panel)
TEXT ·panelHalf1AVX2(SB), NOSPLIT, $0-8
	PANEL1(HALVES, h1)

// func panelHalf2AVX2(p *panel)
TEXT ·panelHalf2AVX2(SB), NOSPLIT, $0-8
	PANEL2(HALVES, h2)

// func panelHalf4AVX2(p *panel)
TEXT ·panelHalf4AVX2(SB), NOSPLIT, $0-8
	PANEL4(HALVES, h4)
