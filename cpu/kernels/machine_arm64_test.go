//go:build !purego

package kernels

import "github.com/klauspost/cpuid/v2"

// processorHas: see that of amd64.
func processorHas() (here, missing []string) {
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		return []string{"neon", "dotprod"}, nil
	}
	return []string{"neon"}, []string{"dotprod"}
}
