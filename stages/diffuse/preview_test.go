package diffuse

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPreview: colours that are sums of channels are found, also where a channel says what another one does.
func TestPreview(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var latents, colours []float32
	for range 200 {
		a, b := float32(rng.NormFloat64()), float32(rng.NormFloat64())
		latents = append(latents, a, b, a)
		colours = append(colours, 0.5+0.1*a-0.05*b, 0.4+0.02*b)
	}
	l, err := FitPreview(latents, colours, 3, 2)
	require.NoError(t, err)
	got := l.Colours(latents)
	require.Len(t, got, len(colours))
	for i, c := range colours {
		require.InDelta(t, 255*min(max(c, 0), 1), got[i], 1)
	}
	_, err = FitPreview(latents[:9], colours[:6], 3, 2)
	require.ErrorContains(t, err, "too few latents")
}
