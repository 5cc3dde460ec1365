package embed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
)

func TestPooler(t *testing.T) {
	for kind, want := range map[ir.Pooling][]float32{
		ir.PoolMean: {3, 4}, ir.PoolFirst: {1, 2}, ir.PoolLast: {5, 6}, ir.PoolRank: {1, 2},
	} {
		p := Pooler{Kind: kind}
		for _, row := range [][]float32{{1, 2}, {3, 4}, {5, 6}} {
			p.Push(row)
		}
		require.Equal(t, want, p.Vector(), kind)
	}
}

func TestNormalize(t *testing.T) {
	x := []float32{3, -4}
	Normalize(x)
	require.Equal(t, []float32{0.6, -0.8}, x)
	zero := []float32{0, 0}
	Normalize(zero)
	require.Equal(t, []float32{0, 0}, zero)
}
