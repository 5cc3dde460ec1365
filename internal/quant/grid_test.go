package quant

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGrids checks the lists: how many points, each once and in order, each value one of its levels, and each level
// used.
func TestGrids(t *testing.T) {
	covered := 0
	for _, c := range []struct {
		name   string
		grid   grid
		points int
	}{
		{"IQ2_XXS", gridIQ2_XXS, 256},
		{"IQ2_XS", gridIQ2_XS, 512},
		{"IQ2_S", gridIQ2_S, 1024},
		{"IQ1", gridIQ1, 2048},
		{"IQ3_XXS", gridIQ3_XXS, 256},
		{"IQ3_S", gridIQ3_S, 512},
	} {
		require.Len(t, c.grid.points, 2*c.points, c.name)
		covered += len(c.grid.points)
		uses, last := map[int]int{}, -1
		for i := range c.points {
			p := int(c.grid.point(i))
			require.Greater(t, p, last, "%s, point %d", c.name, i)
			last = p
			for range c.grid.values {
				level := p & (1<<c.grid.bits - 1)
				require.Less(t, level, len(c.grid.levels), "%s, point %d", c.name, i)
				uses[level]++
				p >>= c.grid.bits
			}
			require.Zero(t, p)
		}
		require.Len(t, uses, len(c.grid.levels), c.name)
	}
	require.Len(t, gridPoints, covered)
}
