package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// A matrix in file order gives the bits of the packed one, and no byte behind its last is read.
func TestFileOrderIsPacked(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, typ := range types {
		for _, s := range Sets() {
			for _, rows := range []int{1, 15, 16, 17, 35, 160} {
				cols := unit(typ) * (1 + rng.IntN(3))
				data := guarded(t, randomRows(rng, typ, rows, cols, nature(rng.IntN(int(natures)))))
				m := packed(t, typ, rows, cols, data)
				file, err := InFileOrder(typ, rows, cols, data)
				require.NoError(t, err)
				strips := NewStrips(make([]byte, StripsBytes(len(data)/rows)))
				for _, n := range []int{1, 2, 9, 33} {
					x := prepared(t, s, typ, n, cols, randomValues(rng, n*cols, tame))
					want, got := make([]float32, n*rows), make([]float32, n*rows)
					s.MatMul(want, rows, m, nil, 0, m.Tiles(), x)
					half := m.Tiles() / 2
					strips.MatMul(s, got, rows, file, nil, 0, half, x)
					strips.MatMul(s, got, rows, file, nil, half, m.Tiles(), x)
					require.NoError(t, sameBits(want, got), "%s/%s, %d rows of %d, times %d", typ, s.Name, rows, cols, n)
				}
			}
		}
	}
}

// TestPackedWhereItLies: strips that a product packed stay so, whichever products come in whatever order, and have the
// bits of a matrix that was packed beforehand; in the end they have its bytes.
func TestPackedWhereItLies(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, typ := range types {
		for _, s := range Sets() {
			rows, cols := TileRows*(1+rng.IntN(40)), unit(typ)*(1+rng.IntN(3))
			data := guarded(t, randomRows(rng, typ, rows, cols, tame))
			m := packed(t, typ, rows, cols, data)
			file, err := InFileOrder(typ, rows, cols, data)
			require.NoError(t, err)
			file.Packed = make([]bool, file.Tiles())
			strips := NewStrips(make([]byte, StripsBytes(m.rowBytes())))
			for range 12 {
				n := []int{1, 3, 9, 33}[rng.IntN(4)]
				from := rng.IntN(m.Tiles())
				to := from + 1 + rng.IntN(m.Tiles()-from)
				x := prepared(t, s, typ, n, cols, randomValues(rng, n*cols, tame))
				want, got := make([]float32, n*rows), make([]float32, n*rows)
				s.MatMul(want, rows, m, nil, from, to, x)
				strips.MatMul(s, got, rows, file, nil, from, to, x)
				require.NoError(t, sameBits(want, got), "%s/%s, tiles %d to %d of %d", typ, s.Name, from, to, m.Tiles())
				for tile, is := range file.Packed {
					if is {
						require.Equal(t, m.strip(tile), file.strip(tile))
					}
				}
				require.NotContains(t, file.Packed[from:to], false)
			}
		}
	}
}

func TestFileOrderRows(t *testing.T) {
	data := randomRows(rand.New(rand.NewPCG(23, 24)), quant.Q4_K, 3, 512, tame)
	m, err := InFileOrder(quant.Q4_K, 3, 512, data)
	require.NoError(t, err)
	want, got := make([]float32, 512), make([]float32, 512)
	require.NoError(t, quant.Dequantize(quant.Q4_K, want, data[2*288:]))
	m.Row(got, 2, new(RowBuffer))
	require.Equal(t, want, got)

	_, err = InFileOrder(quant.Q4_K, 3, 512, data[1:])
	require.EqualError(t, err, "Q4_K, 3 rows of 512: 863 bytes were given, want 864")
	x := prepared(t, generic(), quant.Q4_K, 1, 512, want)
	require.Panics(t, func() { generic().MatMul(got, 3, m, nil, 0, 1, x) })
}

// BenchmarkFileOrder is one row, and a batch, times a matrix that is packed on the way.
func BenchmarkFileOrder(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const rows, cols = 2048, 2048
	sets := Sets()
	s := sets[len(sets)-1]
	for _, typ := range types {
		m, err := InFileOrder(typ, rows, cols, randomRows(rng, typ, rows, cols, tame))
		require.NoError(b, err)
		strips := NewStrips(make([]byte, StripsBytes(m.rowBytes())))
		for _, n := range []int{1, 64} {
			x := prepared(b, s, typ, n, cols, randomValues(rng, n*cols, tame))
			out := make([]float32, n*rows)
			b.Run(fmt.Sprintf("%s/%d", typ, n), func(b *testing.B) {
				b.SetBytes(int64(len(m.Data)))
				for b.Loop() {
					strips.MatMul(s, out, rows, m, nil, 0, m.Tiles(), x)
				}
			})
		}
	}
}
