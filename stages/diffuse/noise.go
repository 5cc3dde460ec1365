package diffuse

import (
	"math"
	"math/rand/v2"
)

// Noise is n numbers of a normal distribution, of a seed: PCG's numbers by Box and Muller's formula. It is ours, and
// not torch's: a seed gives another picture there.
func Noise(seed uint64, n int) []float32 {
	rng := rand.NewPCG(seed, 0)
	unit := func() float64 { return (float64(rng.Uint64()>>11) + 0.5) / (1 << 53) } // never 0 or 1
	x := make([]float32, n)
	for i := 0; i < n; i += 2 {
		radius, angle := math.Sqrt(-2*math.Log(unit())), 2*math.Pi*unit()
		x[i] = float32(radius * math.Cos(angle))
		if i+1 < n {
			x[i+1] = float32(radius * math.Sin(angle))
		}
	}
	return x
}
