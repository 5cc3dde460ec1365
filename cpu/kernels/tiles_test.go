package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// Acts.Tiles has every byte of Blocks, where its comment says; also for rows that are copied.
func TestTilesOfActivations(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, c := range []struct {
		typ                  quant.Type
		width, values, bytes int // k that lie together; values and bytes of a block
	}{{quant.Q8_0, 32, 32, x32Bytes}, {quant.Q4_K, 64, 256, x256Bytes}} {
		const rows, blocks = 35, 3
		cols := blocks * c.values
		size := FormOf(c.typ).RowBytes(cols)
		filled := &Acts{Form: FormOf(c.typ), Rows: rows, Cols: cols}
		copied := &Acts{Form: FormOf(c.typ), Rows: rows, Cols: cols}
		for _, a := range []*Acts{filled, copied} {
			a.Blocks, a.Tiles = make([]byte, rows*size), make([]byte, TileBytes(rows, size))
		}
		for r := range rows {
			require.NoError(t, generic().Quantize(filled, r, randomValues(rng, cols, tame)))
		}
		for r := range rows {
			copied.CopyRow(r, filled, r)
			for at := range size {
				block, i := at/c.bytes, at%c.bytes
				want := TileRows * (r/TileRows*size + block*c.bytes)
				if i < c.values {
					want += i/c.width*c.width*TileRows + r%TileRows*c.width + i%c.width
				} else {
					want += c.values*TileRows + r%TileRows*(c.bytes-c.values) + i - c.values
				}
				require.Equal(t, filled.Blocks[r*size+at], filled.Tiles[want], "%s, row %d, byte %d", c.typ, r, at)
			}
		}
		require.Equal(t, filled, copied)
	}
}
