package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/kvcode"
)

// TestRotateIsThatOfTheFormat: queries and sums are turned by the matrix that codes were made with, to the bit.
func TestRotateIsThatOfTheFormat(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for _, dim := range []int{1, 16, 48, 64, 80, 96, 100, 128, 192, 256, 320, 576} {
		row := make([]float32, dim)
		for i := range row {
			row[i] = float32(r.NormFloat64())
		}
		want := append([]float32{}, row...)
		kvcode.Rotate(want)
		for isa := vec.Generic; isa <= vec.Best(); isa++ {
			got := append([]float32{}, row...)
			rotate(isa, kvcode.RotationOf(dim), got)
			require.Equal(t, want, got, "%d features, set %d", dim, isa)
			unrotate(isa, kvcode.RotationOf(dim), got)
			require.InDeltaSlice(t, row, got, 1e-5)
		}
	}
}

// TestCodedBlocks: sealed blocks have the values that their form gives back, to the bit, and hardly more bytes.
func TestCodedBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	for _, name := range backend.KVNamesOfV() {
		kv, err := backend.MixKV("q4", name)
		require.NoError(t, err)
		form, ok := kv.V.Sealed.(backend.Coded)
		if !ok {
			continue
		}
		for _, dim := range []int{64, 80, 96, 128, 256, 576} {
			t.Run(fmt.Sprint(name, dim), func(t *testing.T) {
				c := newCache(ir.KVLayer{KVHeads: 1, KDim: dim, VDim: dim, Recent: 1}, backend.Format{K: kv.V, V: kv.V})
				rows, got := make([]float32, backend.BlockSize*dim), make([]float32, backend.BlockSize*dim)
				for i := range rows {
					rows[i] = float32(r.NormFloat64())
				}
				want, block := make([]float32, len(rows)), make([]byte, form.Bytes(dim))
				form.Put(block, dim, 0, rows)
				form.Get(want, block, dim, 0)
				w := &workspace{queries: queries{wide: make([]float32, len(rows))}}
				c.memory = make([]byte, c.head)
				c.store(vec.Best(), w, 0, 0, append([]float32{}, rows...), append([]float32{}, rows...))
				c.keys.load(got, c.heldKey(0))
				require.Equal(t, want, got)
				c.values.load(got, c.heldValue(0))
				require.Equal(t, want, got)
				if dim%16 == 0 && dim != 80 {
					require.LessOrEqual(t, float64(c.head), 2*1.05*float64(form.Bytes(dim)))
				} else { // a part of fewer than 32 features takes whole words of 3 and of 5 bits
					require.LessOrEqual(t, float64(c.head), 2*1.08*float64(form.Bytes(dim)))
				}
			})
		}
	}
}
