package probe

import (
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
)

const (
	attendRows = 32   // queries that share a block of a cache, as those of a chunk do
	attendDim  = 64   // features of a head
	gateValues = 2048 // features of a row, which stay in a core's first cache
)

// Attend measures how many operations per second (a multiplication and an addition are two) so many threads do in
// products of float32, as attention is built of them: queries by a block of K, in a core's cache.
func Attend(set *kernels.Set, threads int) []float64 {
	const rounds = 64
	return rates(float64(threads)*rounds*2*attendRows*attendDim*backend.BlockSize, passing(threads, func() func() {
		p := vec.Product{C: make([]float32, attendRows*backend.BlockSize), A: make([]float32, attendRows*attendDim),
			Rows: attendRows, K: attendDim, N: backend.BlockSize, CStride: backend.BlockSize, AStride: attendDim,
			BStride: backend.BlockSize}
		keys := make([]float32, attendDim*backend.BlockSize)
		return func() {
			for range rounds {
				set.Vec.Panel(&p, keys, nil)
			}
		}
	}))
}

// Gate measures for how many values per second so many threads compute x/(1+e⁻ˣ). Normalising, rotating or quantising a
// value, or computing a weight of attention, costs about as much.
func Gate(set *kernels.Set, threads int) []float64 {
	const rounds = 64
	return rates(float64(threads)*rounds*gateValues, passing(threads, func() func() {
		x, y := make([]float32, gateValues), make([]float32, gateValues)
		return func() {
			for range rounds {
				set.Vec.SiLU(y, x)
			}
		}
	}))
}
