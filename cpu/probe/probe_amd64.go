//go:build amd64 && !purego

package probe

import "github.com/klauspost/cpuid/v2"

// readWide and readNarrow read n bytes of each of four ranges, which begin stride bytes apart; n is a multiple of 64.
//
//go:noescape
func readWide(p *byte, stride, n int)

//go:noescape
func readNarrow(p *byte, stride, n int)

// The multiplications and additions of a kernel's inner loop, on 12 registers that do not depend on each other.
func multiplyVNNI(rounds int)
func multiplyAVX512(rounds int)
func multiplyAVX2(rounds int)

func readStreams(p *byte, stride, n int) {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F):
		readWide(p, stride, n)
	case cpuid.CPU.Supports(cpuid.AVX2):
		readNarrow(p, stride, n)
	default:
		readWords(p, stride, n)
	}
}

// multiplier is what a set multiplies with, and how many operations a round of it is.
func multiplier(set string) (burst func(rounds int), ops int) {
	switch set {
	case "avx512vnni":
		return multiplyVNNI, 12 * 64 * 2
	case "avx512":
		return multiplyAVX512, 12 * 64 * 2
	case "avx2":
		return multiplyAVX2, 12 * 32 * 2
	}
	return nil, 0
}
