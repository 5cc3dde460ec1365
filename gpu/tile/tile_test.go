package tile_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/gpu/tile/tiletest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestRecode recodes rows of all types that are recoded: codes, scales and lows stand for the values of the file, bit
// for bit, and are zero past the row's end.
func TestRecode(t *testing.T) {
	for _, typ := range quant.All() {
		l := tile.Of(typ)
		require.Equal(t, quant.HasCodec(typ), l != tile.None, "%s", typ)
		if l.Recoded() == 0 {
			continue
		}
		const rows = 3
		cols := (256 + 96) / typ.Block() * typ.Block()
		file, values := tiletest.RandomWeights(t, typ, rows, cols, 1)
		all := tiletest.Recoded(t, typ, cols, file)
		size, err := tile.UploadBytes(typ, cols)
		require.NoError(t, err)
		require.Len(t, all, rows*size)
		for r := range rows {
			row := all[r*size:][:size]
			for i := range kernel.PaddedWidth(cols) {
				part, k := row[i/kernel.TileCols*l.Recoded():][:l.Recoded()], i%kernel.TileCols
				want := float32(0)
				if i < cols {
					want = values[r*cols+i]
				}
				require.Equal(t, want, valueOf(part, k), "%s: row %d, value %d", typ, r, i)
			}
		}
	}
}

// valueOf is value k of what a tile has of a row that was recoded.
func valueOf(part []byte, k int) float32 {
	at := kernel.TileCols + k/16*4
	v := float32(int8(part[k])) * math.Float32frombits(binary.LittleEndian.Uint32(part[at:]))
	if len(part) > kernel.TileCols+64 {
		v -= math.Float32frombits(binary.LittleEndian.Uint32(part[at+64:]))
	}
	return v
}

// TestPlace: rows of a pair alternate by tiles of 32, and begin with whole ones.
func TestPlace(t *testing.T) {
	single, pair := kernel.Matrix{Rows: 100, Cols: 256}, kernel.Matrix{Rows: 100, Cols: 256, Pair: true}
	for _, c := range []struct {
		p           kernel.Pack
		first, step int
	}{
		{kernel.Pack{W: &single, Rows: 100}, 0, 1},
		{kernel.Pack{W: &single, First: 64, Rows: 36}, 2, 1},
		{kernel.Pack{W: &pair, First: 64, Rows: 36}, 4, 2},
		{kernel.Pack{W: &pair, First: 64, Rows: 36, Up: true}, 5, 2},
	} {
		first, step, err := tile.Place(&c.p)
		require.NoError(t, err)
		require.Equal(t, []int{c.first, c.step}, []int{first, step})
	}
	_, _, err := tile.Place(&kernel.Pack{W: &single, First: 16, Rows: 1})
	require.ErrorContains(t, err, "whole tiles")
	_, _, err = tile.Place(&kernel.Pack{W: &single, First: 96, Rows: 5})
	require.Error(t, err)
}
