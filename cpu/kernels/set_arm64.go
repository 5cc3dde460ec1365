//go:build arm64 && !purego

package kernels

import "github.com/sluice-ai/sluice/internal/system"

// native lists the sets in assembly that this machine can run, slowest first.
func native() []*Set {
	sets := []*Set{newNEON()} // every processor of arm64 has NEON
	if system.DotProducts() {
		sets = append(sets, newSDOT())
	}
	return sets
}
