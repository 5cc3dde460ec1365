package diffuse

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoise: numbers have the mean, the variance and the tails of a normal distribution, and a seed has its own.
func TestNoise(t *testing.T) {
	const n = 100_001
	x := Noise(1, n)
	sum, square, far := 0.0, 0.0, 0
	for _, v := range x {
		sum, square = sum+float64(v), square+float64(v)*float64(v)
		if v > 2 || v < -2 {
			far++
		}
	}
	require.InDelta(t, 0, sum/n, 0.01)
	require.InDelta(t, 1, square/n, 0.02)
	require.InDelta(t, 0.0455, float64(far)/n, 0.003)
	require.Equal(t, x[:9], Noise(1, 9))
	require.NotEqual(t, x[:9], Noise(2, 9))
}
