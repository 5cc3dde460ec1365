package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// Packing loses nothing: every row decodes to the bits that the file's row has, whatever pieces it came in.
func TestRowIsDequantize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range types {
		for rows := 1; rows <= 33; rows++ {
			cols := unit(typ) * (1 + rng.IntN(5))
			data := randomRows(rng, typ, rows, cols, wild)
			m := packed(t, typ, rows, cols, nil)
			size := len(data) / rows
			for from := 0; from < rows; from += TileRows {
				require.NoError(t, generic().Pack(m, from, data[from*size:min(rows, from+TileRows)*size]))
			}
			want, got := make([]float32, cols), make([]float32, cols)
			for r := range rows {
				require.NoError(t, quant.Dequantize(typ, want, data[r*size:][:size]))
				m.Row(got, r, new(RowBuffer))
				require.NoError(t, sameBits(want, got), "%s, %d rows of %d, row %d", typ, rows, cols, r)
			}
		}
	}
}

func TestTileHasTheBytesOfItsBlocks(t *testing.T) {
	for _, typ := range types {
		covered := 0
		for _, f := range formats[typ].fields {
			require.Equal(t, covered, f.offset, typ)
			require.Zero(t, f.size%f.unit, typ)
			covered += f.size
		}
		require.Equal(t, typ.Bytes(), covered, typ)
	}
}

func TestRecodingsHaveInverses(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, typ := range types {
		for _, f := range formats[typ].fields {
			for i := 0; f.recode != nil && i < 100; i++ {
				file := make([]byte, TileRows*f.size)
				for i := range file {
					file[i] = byte(rng.Uint32())
				}
				tile := make([]byte, len(file))
				interleave(tile, rows{file, f.size, TileRows}, 0, f.unit)
				f.recode.pack(tile)
				units := make([]byte, f.size)
				for r := range TileRows {
					gather(units, tile, f.unit, r)
					f.recode.unpack(units)
					require.Equal(t, file[r*f.size:][:f.size], units, "%s, row %d", typ, r)
				}
			}
		}
	}
}

func TestSplitScales(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		var file, packed [12]byte
		for i := range file {
			file[i] = byte(rng.Uint32())
		}
		tile := make([]byte, TileRows*len(file))
		interleave(tile, rows{file[:], len(file), 1}, 0, 4) // 16 times the same row
		packScales(tile)
		gather(packed[:], tile, 4, 7)
		scales, mins := splitScales(&packed)
		wantScales, wantMins := quant.UnpackScales(&file)
		require.Equal(t, wantScales, scales)
		require.Equal(t, wantMins, mins)
	}
}

func TestSizeRefuses(t *testing.T) {
	for _, c := range []struct {
		typ        quant.Type
		rows, cols int
		want       string
	}{
		{quant.I32, 1, 256, "I32 has no kernel: convert the model to a type that has one, such as Q8_0 or Q4_K"},
		{quant.Type(9999), 1, 256, "type 9999 has no kernel: convert the model to a type that has one, such as Q8_0 or Q4_K"},
		{quant.Q4_K, 1, 100, "Q4_K comes in blocks of 256 values, and 100 is not a multiple of it"},
		{quant.F32, 0, 4, "F32: a matrix of 0 rows and 4 columns cannot be stored"},
		{quant.F32, 4, 0, "F32: a matrix of 4 rows and 0 columns cannot be stored"},
		{quant.F32, math.MaxInt, 1, "F32: a matrix of 9223372036854775807 rows and 1 columns cannot be stored"},
		{quant.F32, math.MaxInt / 8, 4, "F32: a matrix of 1152921504606846975 rows and 4 columns cannot be stored"},
	} {
		_, err := Size(c.typ, c.rows, c.cols)
		require.EqualError(t, err, c.want)
	}
	_, err := NewMatrix(quant.Q8_0, 17, 32, make([]byte, 17*34))
	require.EqualError(t, err, "Q8_0, 17 rows of 32: memory of 578 bytes was given, want 1088")
}

func TestPackRefusesOddPieces(t *testing.T) {
	m := packed(t, quant.F32, 40, 2, nil)
	require.NoError(t, generic().Pack(m, 32, make([]byte, 8*8)))
	for _, c := range []struct{ row, bytes int }{{1, 8 * 16}, {0, 8 * 8}, {0, 7}, {32, 8 * 9}, {-16, 8 * 16}, {48, 0}} {
		require.Error(t, generic().Pack(m, c.row, make([]byte, c.bytes)), "%+v", c)
	}
}

// TestEveryFormatHasKernels: what internal/quant decodes is multiplied here, too.
func TestEveryFormatHasKernels(t *testing.T) {
	for _, typ := range quant.All() {
		require.Equal(t, quant.HasCodec(typ), Supports(typ), "%s: formats, in cpu/kernels/formats.go", typ)
	}
}
