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
