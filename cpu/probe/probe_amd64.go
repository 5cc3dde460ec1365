//go:build amd64 && !purego

package probe

import "github.com/klauspost/cpuid/v2"

// These read n bytes of each of four ranges, which begin stride bytes apart; n is a multiple of 64.
//
//go:noescape
func readAVX512(p *byte, stride, n int)

//go:noescape
func readAVX2(p *byte, stride, n int)

// The multiplications and additions of a kernel's inner loop, 12 in a round that do not wait for each other.
func multiplyVNNI(rounds int)
func multiplyAVX2(rounds int)

// multiplyAMX multiplies tiles of 16 rows of 64 bytes. The system must have granted their use.
//
//go:noescape
func multiplyAMX(config *byte, rounds int)

func readStreams(p *byte, stride, n int) {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F):
		readAVX512(p, stride, n)
	case cpuid.CPU.Supports(cpuid.AVX2):
		readAVX2(p, stride, n)
	default:
		readWords(p, stride, n)
	}
}

// multiplier returns the inner loop that a set multiplies with, and the operations in a round of it.
func multiplier(set string) (burst func(rounds int), ops int) {
	switch set {
	case "amx":
		return multiplyTiles, 6 * 16 * 16 * 64 * 2
	case "avx512vnni":
		return multiplyVNNI, 12 * 64 * 2
	case "avx512", "avx2": // alike but for floats
		return multiplyAVX2, 12 * 32 * 2
	}
	return nil, 0
}

// multiplyTiles configures all eight tiles alike. A set named amx exists only where the system has granted them.
func multiplyTiles(rounds int) {
	const palette, rowBytes, rows = 0, 16, 48 // offsets in the configuration
	var config [64]byte
	config[palette] = 1
	for tile := range 8 {
		config[rowBytes+2*tile], config[rows+tile] = 64, 16
	}
	multiplyAMX(&config[0], rounds)
}
