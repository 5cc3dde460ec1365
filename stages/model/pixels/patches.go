package pixels

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Patch is the latents at a side of a transformer's patch, Waves the features of a time.
const (
	Patch = 2
	Waves = 256
)

// checkAxes checks the features of a head that turn by each axis of a token's place.
func checkAxes(axes [3]int) error {
	const most = 1 << 12
	for _, n := range axes {
		if n < 2 || n%2 != 0 || n > most {
			return fmt.Errorf("the axes of a head are %d, want even numbers from 2 to %d", axes, most)
		}
	}
	return nil
}

// turns are the rotations of a head: neighbouring features, by axes one after the other.
func turns(axes [3]int, theta float64) ir.RoPEArgs {
	a := ir.RoPEArgs{Interleaved: true, Mscale: 1}
	for axis, n := range axes {
		for pair := range n / 2 {
			a.Freq = append(a.Freq, math.Pow(theta, -2*float64(pair)/float64(n)))
			a.Axes = append(a.Axes, uint8(axis))
		}
	}
	a.Dims = 2 * len(a.Freq)
	a.HeadDim = a.Dims
	return a
}

// waves are those of a number: cosines, then sines.
func waves(at float64) []float32 {
	const half = Waves / 2
	x := make([]float32, Waves)
	for i := range half {
		sin, cos := math.Sincos(at * math.Exp(-math.Log(10000)*float64(i)/half))
		x[i], x[half+i] = float32(cos), float32(sin)
	}
	return x
}
