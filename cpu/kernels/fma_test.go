package kernels

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// fma32 rounds once: compared with exact arithmetic, near ties and at both ends of the range.
func TestFMA32(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	exact := func(a, b, c float32) float32 {
		p := new(big.Float).SetPrec(1000).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
		f, _ := p.Add(p, big.NewFloat(float64(c))).Float32()
		return f
	}
	random := func() float32 {
		for {
			f := math.Float32frombits(rng.Uint32())
			if f-f == 0 {
				return f
			}
		}
	}
	for range 200_000 {
		a, b, c := random(), random(), random()
		switch rng.IntN(4) {
		case 0: // the product is half of c's last place, less 2⁻⁴⁶ of itself: in float64 the sum seems a tie
			c = math.Float32frombits((40+rng.Uint32N(200))<<23 | rng.Uint32N(1<<23))
			half := math.Float32frombits(math.Float32bits(c)>>23<<23) * 0x1p-24
			a, b = half*(1+0x1p-23), 1-0x1p-23
		case 1: // comparable terms
			b = float32(rng.NormFloat64())
			c = float32(-float64(a) * float64(b) * (1 + rng.NormFloat64()*1e-6))
		}
		if c-c != 0 {
			continue
		}
		want, got := exact(a, b, c), fma32(a, b, c)
		if want == 0 && got == 0 {
			continue // exact arithmetic has no signed zero
		}
		require.Equal(t, math.Float32bits(want), math.Float32bits(got), "%v·%v+%v = %v, got %v", a, b, c, want, got)
	}
	inf := float32(math.Inf(1))
	require.Equal(t, inf, fma32(inf, 2, 1))
	require.Equal(t, inf, fma32(math.MaxFloat32, 2, 1))
	require.True(t, math.IsNaN(float64(fma32(inf, 0, 1))))
	require.True(t, math.IsNaN(float64(fma32(1, inf, -inf))))
}
