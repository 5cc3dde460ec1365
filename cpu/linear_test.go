package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/cpu/kernels"
)

// Chunks are all tiles in a row, none larger than the one before, and of one row's large ones all streams are as long.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tiles := rapid.IntRange(1, 10000).Draw(t, "tiles")
		rows := rapid.IntRange(1, 600).Draw(t, "rows")
		workers := rapid.IntRange(1, 64).Draw(t, "workers")
		tile := rapid.IntRange(64, 1<<20).Draw(t, "bytes of a tile")
		s := newShares(tiles, rows, workers, tiles*tile)
		end, before := 0, tiles
		for _, to := range s.divide(nil) {
			size := to - end
			require.Positive(t, size)
			require.LessOrEqual(t, size, before)
			if to < tiles && size > kernels.Streams {
				require.Zero(t, size%kernels.Streams)
			}
			end, before = to, size
		}
		require.Equal(t, tiles, end)
		if rows > 1 || workers > 1 {
			require.LessOrEqual(t, before, s.least, "the last is small")
			require.LessOrEqual(t, s.least*tile*rows, max(chunkBytes, s.multiple*tile*rows))
		}
	})
}

// Large chunks first: each asks for its first weights too late.
func TestSharesOfOneRow(t *testing.T) {
	s := newShares(128, 1, 2, 128*26880) // 2048×2048 in Q6_K
	var sizes []int
	end := 0
	for _, to := range s.divide(nil) {
		sizes = append(sizes, to-end)
		end = to
	}
	require.Equal(t, []int{40, 28, 20, 12, 8, 4, 4, 4, 2, 2, 1, 1, 1, 1}, sizes)
}
