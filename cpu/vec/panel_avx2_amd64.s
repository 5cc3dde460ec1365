//go:build amd64 && !purego

#include "textflag.h"

// Offsets in panel: a 0, c 8, b 16, aStride 24, cStride 32, bStride 40, k 48, groups 56, ahead 64. 16 columns: two
// accumulators for each row.
//
//	R8-R11  rows of A   SI  row of B   DX  its stride   AX  k   CX  end of k   BX  from B to what is read next
//	Y0-Y7   accumulators, two a row    Y8, Y9  a row of B    Y10  an element of A

#define START \
	MOVQ p+0(FP), DI \
	MOVQ 40(DI), DX  \
	MOVQ 48(DI), CX  \
	MOVQ 64(DI), BX

// GROUP finds up to four rows of A, and leaves the next group's first in the panel.
#define GROUP(rows) \
	MOVQ (DI), R8              \
	MOVQ 24(DI), AX            \
	LEAQ (R8)(AX*1), R9        \
	LEAQ (R9)(AX*1), R10       \
	LEAQ (R10)(AX*1), R11      \
	LEAQ (R8)(AX*rows), AX     \
	MOVQ AX, (DI)              \
	MOVQ 16(DI), SI            \
	XORQ AX, AX

#define ZERO(s, t) \
	VXORPS s, s, s \
	VXORPS t, t, t

#define WHOLE \
	VMOVUPS (SI), Y8      \
	VMOVUPS 32(SI), Y9    \
	PREFETCHT0 (SI)(BX*1)

#define HALVES \
	VCVTPH2PS (SI), Y8    \
	VCVTPH2PS 16(SI), Y9  \
	PREFETCHT0 (SI)(BX*1)

#define BYTES \
	VPMOVSXBD (SI), Y8    \
	VPMOVSXBD 8(SI), Y9   \
	VCVTDQ2PS Y8, Y8      \
	VCVTDQ2PS Y9, Y9      \
	PREFETCHT0 (SI)(BX*1)

#define STEP(a, s, t) \
	VBROADCASTSS (a)(AX*4), Y10 \
	VFMADD231PS Y8, Y10, s      \
	VFMADD231PS Y9, Y10, t

#define NEXT(loop) \
	ADDQ DX, SI          \
	INCQ AX              \
	CMPQ AX, CX          \
	JLT loop             \
	VXORPS Y10, Y10, Y10 \
	MOVQ 8(DI), R8       \
	MOVQ 32(DI), R9

#define STORE(s, t) \
	VADDPS Y10, s, s    \
	VADDPS Y10, t, t    \
	VMOVUPS s, (R8)     \
	VMOVUPS t, 32(R8)   \
	ADDQ R9, R8

#define PANEL1(load, group, loop) \
	START            \
group:               \
	GROUP(1)         \
	ZERO(Y0, Y1)     \
loop:                \
	load             \
	STEP(R8, Y0, Y1) \
	NEXT(loop)       \
	STORE(Y0, Y1)    \
	MOVQ R8, 8(DI)   \
	DECQ 56(DI)      \
	JNZ group        \
	VZEROUPPER       \
	RET

#define PANEL2(load, group, loop) \
	START            \
group:               \
	GROUP(2)         \
	ZERO(Y0, Y1)     \
	ZERO(Y2, Y3)     \
loop:                \
	load             \
	STEP(R8, Y0, Y1) \
	STEP(R9, Y2, Y3) \
	NEXT(loop)       \
	STORE(Y0, Y1)    \
	STORE(Y2, Y3)    \
	MOVQ R8, 8(DI)   \
	DECQ 56(DI)      \
	JNZ group        \
	VZEROUPPER       \
	RET

#define PANEL4(load, group, loop) \
	START             \
group:                \
	GROUP(4)          \
	ZERO(Y0, Y1)      \
	ZERO(Y2, Y3)      \
	ZERO(Y4, Y5)      \
	ZERO(Y6, Y7)      \
loop:                 \
	load              \
	STEP(R8, Y0, Y1)  \
	STEP(R9, Y2, Y3)  \
	STEP(R10, Y4, Y5) \
	STEP(R11, Y6, Y7) \
	NEXT(loop)        \
	STORE(Y0, Y1)     \
	STORE(Y2, Y3)     \
	STORE(Y4, Y5)     \
	STORE(Y6, Y7)     \
	MOVQ R8, 8(DI)    \
	DECQ 56(DI)       \
	JNZ group         \
	VZEROUPPER        \
	RET

// func panel1AVX2(p *panel)
TEXT ·panel1AVX2(SB), NOSPLIT, $0-8
	PANEL1(WHOLE, w1, w1k)

// func panel2AVX2(p *panel)
TEXT ·panel2AVX2(SB), NOSPLIT, $0-8
	PANEL2(WHOLE, w2, w2k)

// func panel4AVX2(p *panel)
TEXT ·panel4AVX2(SB), NOSPLIT, $0-8
	PANEL4(WHOLE, w4, w4k)

// func panelHalf1AVX2(p *panel)
TEXT ·panelHalf1AVX2(SB), NOSPLIT, $0-8
	PANEL1(HALVES, h1, h1k)

// func panelHalf2AVX2(p *panel)
TEXT ·panelHalf2AVX2(SB), NOSPLIT, $0-8
	PANEL2(HALVES, h2, h2k)

// func panelHalf4AVX2(p *panel)
TEXT ·panelHalf4AVX2(SB), NOSPLIT, $0-8
	PANEL4(HALVES, h4, h4k)

// func panelByte1AVX2(p *panel)
TEXT ·panelByte1AVX2(SB), NOSPLIT, $0-8
	PANEL1(BYTES, b1, b1k)

// func panelByte2AVX2(p *panel)
TEXT ·panelByte2AVX2(SB), NOSPLIT, $0-8
	PANEL2(BYTES, b2, b2k)

// func panelByte4AVX2(p *panel)
TEXT ·panelByte4AVX2(SB), NOSPLIT, $0-8
	PANEL4(BYTES, b4, b4k)
