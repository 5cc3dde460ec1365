//go:build arm64 && !purego

package kernels

import (
	"math"
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/system"
)

// native lists the sets in assembly that this machine can run, slowest first.
func native() []*Set {
	sets := []*Set{newNEON()} // every processor of arm64 has NEON
	if system.DotProducts() {
		sets = append(sets, newSDOT())
	}
	for _, s := range sets {
		s.Vec, s.quantize = vec.NEON, quantizers(roundNEON)
	}
	return sets
}

// roundNEON is quantizeBlock by the routines of package vec.
func roundNEON(x []byte, src []float32) (dx float32, ok bool) {
	if !vec.NEON.Finite(src) {
		return 0, false
	}
	to := unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
	return vec.NEON.Bytes(to, src, math.Float32frombits(tinyBits)), true
}
