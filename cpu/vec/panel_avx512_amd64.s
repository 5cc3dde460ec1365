//go:build amd64 && !purego

#include "textflag.h"

// Offsets in panel: a 0, c 8, b 16, aStride 24, cStride 32, bStride 40, k 48, groups 56, ahead 64, mask 72.
// Up to 64 columns: four accumulators for each row.
//
//	R8-R11  rows of A   SI  row of B   DX  its stride   AX  k   CX  end of k   BX  from B to what is read next
//	Z0-Z15  accumulators, four a row   Z16-Z19  a row of B   Z20  an element of A   K1-K4  columns

#define START \
	MOVQ p+0(FP), DI  \
	MOVQ 40(DI), DX   \
	MOVQ 48(DI), CX   \
	MOVQ 64(DI), BX   \
	MOVQ 72(DI), AX   \
	KMOVW AX, K1      \
	SHRQ $16, AX      \
	KMOVW AX, K2      \
	SHRQ $16, AX      \
	KMOVW AX, K3      \
	SHRQ $16, AX      \
	KMOVW AX, K4

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

#define ZERO(s, t, u, v) \
	VPXORD s, s, s \
	VPXORD t, t, t \
	VPXORD u, u, u \
	VPXORD v, v, v

#define WHOLE \
	VMOVUPS.Z (SI), K1, Z16    \
	VMOVUPS.Z 64(SI), K2, Z17  \
	VMOVUPS.Z 128(SI), K3, Z18 \
	VMOVUPS.Z 192(SI), K4, Z19 \
	PREFETCHT0 (SI)(BX*1)      \
	PREFETCHT0 64(SI)(BX*1)    \
	PREFETCHT0 128(SI)(BX*1)   \
	PREFETCHT0 192(SI)(BX*1)

#define HALVES \
	VCVTPH2PS.Z (SI), K1, Z16   \
	VCVTPH2PS.Z 32(SI), K2, Z17 \
	VCVTPH2PS.Z 64(SI), K3, Z18 \
	VCVTPH2PS.Z 96(SI), K4, Z19 \
	PREFETCHT0 (SI)(BX*1)       \
	PREFETCHT0 64(SI)(BX*1)

#define BYTES \
	VPMOVSXBD.Z (SI), K1, Z16   \
	VPMOVSXBD.Z 16(SI), K2, Z17 \
	VPMOVSXBD.Z 32(SI), K3, Z18 \
	VPMOVSXBD.Z 48(SI), K4, Z19 \
	VCVTDQ2PS Z16, Z16          \
	VCVTDQ2PS Z17, Z17          \
	VCVTDQ2PS Z18, Z18          \
	VCVTDQ2PS Z19, Z19          \
	PREFETCHT0 (SI)(BX*1)

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
	VPXORD Z20, Z20, Z20 \
	MOVQ 8(DI), R8       \
	MOVQ 32(DI), R9

#define STORE(s, t, u, v) \
	VADDPS Z20, s, s      \
	VADDPS Z20, t, t      \
	VADDPS Z20, u, u      \
	VADDPS Z20, v, v      \
	VMOVUPS s, K1, (R8)    \
	VMOVUPS t, K2, 64(R8)  \
	VMOVUPS u, K3, 128(R8) \
	VMOVUPS v, K4, 192(R8) \
	ADDQ R9, R8

#define PANEL1(load, group, loop) \
	START                    \
group:                       \
	GROUP(1)                 \
	ZERO(Z0, Z1, Z2, Z3)     \
loop:                        \
	load                     \
	STEP(R8, Z0, Z1, Z2, Z3) \
	NEXT(loop)               \
	STORE(Z0, Z1, Z2, Z3)    \
	MOVQ R8, 8(DI)           \
	DECQ 56(DI)              \
	JNZ group                \
	VZEROUPPER               \
	RET

#define PANEL2(load, group, loop) \
	START                    \
group:                       \
	GROUP(2)                 \
	ZERO(Z0, Z1, Z2, Z3)     \
	ZERO(Z4, Z5, Z6, Z7)     \
loop:                        \
	load                     \
	STEP(R8, Z0, Z1, Z2, Z3) \
	STEP(R9, Z4, Z5, Z6, Z7) \
	NEXT(loop)               \
	STORE(Z0, Z1, Z2, Z3)    \
	STORE(Z4, Z5, Z6, Z7)    \
	MOVQ R8, 8(DI)           \
	DECQ 56(DI)              \
	JNZ group                \
	VZEROUPPER               \
	RET

#define PANEL4(load, group, loop) \
	START                         \
group:                            \
	GROUP(4)                      \
	ZERO(Z0, Z1, Z2, Z3)          \
	ZERO(Z4, Z5, Z6, Z7)          \
	ZERO(Z8, Z9, Z10, Z11)        \
	ZERO(Z12, Z13, Z14, Z15)      \
loop:                             \
	load                          \
	STEP(R8, Z0, Z1, Z2, Z3)      \
	STEP(R9, Z4, Z5, Z6, Z7)      \
	STEP(R10, Z8, Z9, Z10, Z11)   \
	STEP(R11, Z12, Z13, Z14, Z15) \
	NEXT(loop)                    \
	STORE(Z0, Z1, Z2, Z3)         \
	STORE(Z4, Z5, Z6, Z7)         \
	STORE(Z8, Z9, Z10, Z11)       \
	STORE(Z12, Z13, Z14, Z15)     \
	MOVQ R8, 8(DI)                \
	DECQ 56(DI)                   \
	JNZ group                     \
	VZEROUPPER                    \
	RET

// func panel1AVX512(p *panel)
TEXT ·panel1AVX512(SB), NOSPLIT, $0-8
	PANEL1(WHOLE, w1, w1k)

// func panel2AVX512(p *panel)
TEXT ·panel2AVX512(SB), NOSPLIT, $0-8
	PANEL2(WHOLE, w2, w2k)

// func panel4AVX512(p *panel)
TEXT ·panel4AVX512(SB), NOSPLIT, $0-8
	PANEL4(WHOLE, w4, w4k)

// func panelHalf1AVX512(p *panel)
TEXT ·panelHalf1AVX512(SB), NOSPLIT, $0-8
	PANEL1(HALVES, h1, h1k)

// func panelHalf2AVX512(p *panel)
TEXT ·panelHalf2AVX512(SB), NOSPLIT, $0-8
	PANEL2(HALVES, h2, h2k)

// func panelHalf4AVX512(p *panel)
TEXT ·panelHalf4AVX512(SB), NOSPLIT, $0-8
	PANEL4(HALVES, h4, h4k)

// func panelByte1AVX512(p *panel)
TEXT ·panelByte1AVX512(SB), NOSPLIT, $0-8
	PANEL1(BYTES, b1, b1k)

// func panelByte2AVX512(p *panel)
TEXT ·panelByte2AVX512(SB), NOSPLIT, $0-8
	PANEL2(BYTES, b2, b2k)

// func panelByte4AVX512(p *panel)
TEXT ·panelByte4AVX512(SB), NOSPLIT, $0-8
	PANEL4(BYTES, b4, b4k)
