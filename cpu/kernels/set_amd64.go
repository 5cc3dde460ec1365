//go:build amd64 && !purego

package kernels

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/system"
)

// native lists the sets in assembly that this machine can run, slowest first.
func native() (sets []*Set) {
	if !cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C) {
		return nil
	}
	sets = append(sets, newAVX2())
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL) {
		sets = append(sets, newAVX512())
		if cpuid.CPU.Supports(cpuid.AVX512VNNI) {
			sets = append(sets, newVNNI())
			if cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXINT8) && system.AllowTiles() {
				sets = append(sets, newAMX())
			}
		}
	}
	for i, s := range sets {
		s.Vec = []vec.ISA{vec.AVX2, vec.AVX512}[min(i, 1)]
	}
	return sets
}
