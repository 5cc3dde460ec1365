//go:build amd64 && !purego

package vec

import "github.com/klauspost/cpuid/v2"

// Best is the largest instruction set that this machine has.
func Best() ISA {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.FMA3, cpuid.F16C):
		return AVX512
	case cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C):
		return AVX2
	}
	return Generic
}

// The routines below take n elements, a positive multiple of Lanes, at any alignment. Each is the twin of the same
// name; l are the lanes of a reduction, zero before.

//go:noescape
func sumAVX2(l *[Lanes]float32, x *float32, n int)

//go:noescape
func sumSquaresAVX2(l *[Lanes]float32, x *float32, n int)

//go:noescape
func finiteAVX2(l *[Lanes]float32, x *float32, n int)

//go:noescape
func addAVX2(y, a, b *float32, n int)

//go:noescape
func mulAVX2(y, a, b *float32, n int)

//go:noescape
func scaleAVX2(y, x *float32, s float32, n int)

//go:noescape
func divideAVX2(y, x *float32, s float32, n int)

//go:noescape
func mergeAVX2(acc, o *float32, alpha, beta float32, n int)

//go:noescape
func rotateAVX2(a, b, cos, sin *float32, n int)

//go:noescape
func expAVX2(y, x *float32, n int)

//go:noescape
func gateAVX2(y, x *float32, c1, c3 float32, n int)

//go:noescape
func softCapAVX2(y, x *float32, limit, twice float32, n int)

//go:noescape
func softMaxAVX2(l *[Lanes]float32, x *[Block]float32) float32

//go:noescape
func halveAVX2(y *uint16, x *float32, n int)

//go:noescape
func widenAVX2(y *float32, x *uint16, n int)

//go:noescape
func rotatePairsAVX2(x, cos, sin *float32, n int)

//go:noescape
func largestAVX2(x *float32, n int) float32

//go:noescape
func roundAVX2(y *int8, x *float32, s float32, n int)

//go:noescape
func widenBytesAVX2(y *float32, x *int8, n int)

//go:noescape
func mulRowsAVX2(x *float32, s *[Block]float32, rows int)

//go:noescape
func mulAddRowsAVX2(y, x *float32, s *[Block]float32, rows int)

// The same for AVX-512, with any positive number of elements; reductions add up their lanes.

//go:noescape
func sumAVX512(x *float32, n int) float32

//go:noescape
func sumSquaresAVX512(x *float32, n int) float32

//go:noescape
func finiteAVX512(x *float32, n int) float32

//go:noescape
func largestAVX512(x *float32, n int) float32

//go:noescape
func addAVX512(y, a, b *float32, n int)

//go:noescape
func mulAVX512(y, a, b *float32, n int)

//go:noescape
func scaleAVX512(y, x *float32, s float32, n int)

//go:noescape
func divideAVX512(y, x *float32, s float32, n int)

//go:noescape
func mergeAVX512(acc, o *float32, alpha, beta float32, n int)

//go:noescape
func rotateAVX512(a, b, cos, sin *float32, n int)

//go:noescape
func expAVX512(y, x *float32, n int)

//go:noescape
func gateAVX512(y, x *float32, c1, c3 float32, n int)

//go:noescape
func softCapAVX512(y, x *float32, limit, twice float32, n int)

//go:noescape
func softMaxAVX512(x *[Block]float32) (top, sum float32)

//go:noescape
func mulRowsAVX512(x *float32, s *[Block]float32, rows int)

//go:noescape
func mulAddRowsAVX512(y, x *float32, s *[Block]float32, rows int)

//go:noescape
func halveAVX512(y *uint16, x *float32, n int)

//go:noescape
func widenAVX512(y *float32, x *uint16, n int)

//go:noescape
func roundAVX512(y *int8, x *float32, s float32, n int)

//go:noescape
func widenBytesAVX512(y *float32, x *int8, n int)

// The panels take groups of 1, 2 or 4 rows, and elements of B of 4, 2 or 1 bytes: 16 columns with AVX2, up to 64 by the
// mask with AVX-512.

func runAVX2(p *panel, rows, size int) {
	switch 8*size + rows {
	case 8*4 + 4:
		panel4AVX2(p)
	case 8*4 + 2:
		panel2AVX2(p)
	case 8*4 + 1:
		panel1AVX2(p)
	case 8*2 + 4:
		panelHalf4AVX2(p)
	case 8*2 + 2:
		panelHalf2AVX2(p)
	case 8*2 + 1:
		panelHalf1AVX2(p)
	case 8*1 + 4:
		panelByte4AVX2(p)
	case 8*1 + 2:
		panelByte2AVX2(p)
	case 8*1 + 1:
		panelByte1AVX2(p)
	}
}

func runAVX512(p *panel, rows, size int) {
	switch 8*size + rows {
	case 8*4 + 4:
		panel4AVX512(p)
	case 8*4 + 2:
		panel2AVX512(p)
	case 8*4 + 1:
		panel1AVX512(p)
	case 8*2 + 4:
		panelHalf4AVX512(p)
	case 8*2 + 2:
		panelHalf2AVX512(p)
	case 8*2 + 1:
		panelHalf1AVX512(p)
	case 8*1 + 4:
		panelByte4AVX512(p)
	case 8*1 + 2:
		panelByte2AVX512(p)
	case 8*1 + 1:
		panelByte1AVX512(p)
	}
}

//go:noescape
func panel1AVX2(p *panel)

//go:noescape
func panel2AVX2(p *panel)

//go:noescape
func panel4AVX2(p *panel)

//go:noescape
func panelHalf1AVX2(p *panel)

//go:noescape
func panelHalf2AVX2(p *panel)

//go:noescape
func panelHalf4AVX2(p *panel)

//go:noescape
func panelByte1AVX2(p *panel)

//go:noescape
func panelByte2AVX2(p *panel)

//go:noescape
func panelByte4AVX2(p *panel)

//go:noescape
func panel1AVX512(p *panel)

//go:noescape
func panel2AVX512(p *panel)

//go:noescape
func panel4AVX512(p *panel)

//go:noescape
func panelHalf1AVX512(p *panel)

//go:noescape
func panelHalf2AVX512(p *panel)

//go:noescape
func panelHalf4AVX512(p *panel)

//go:noescape
func panelByte1AVX512(p *panel)

//go:noescape
func panelByte2AVX512(p *panel)

//go:noescape
func panelByte4AVX512(p *panel)
