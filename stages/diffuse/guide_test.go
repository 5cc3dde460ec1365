package diffuse

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuided(t *testing.T) {
	p, other := []float32{3, 4}, []float32{3, 2}
	require.Equal(t, p, Guided(p, nil, 1, true))
	require.Equal(t, []float32{3, 8}, Guided(p, other, 2, false))
	require.InDeltaSlice(t, []float64{3 * 5 / 8.544003745, 8 * 5 / 8.544003745}, Guided(p, other, 2, true), 1e-6)
	require.Equal(t, []float32{3, 2}, Guided(p, []float32{3, 5}, 2, true), "what is shorter stays")
}
