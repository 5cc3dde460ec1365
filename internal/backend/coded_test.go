package backend

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/kvcode"
)

// TestCoded: rows come back near, alone and together, in as many bits as the type says.
func TestCoded(t *testing.T) {
	for _, c := range []struct {
		code  kvcode.Code
		bytes int     // of a row of 128 features
		apart float64 // relative
	}{
		{kvcode.Code{Bits: 5}, 80 + 8, .05}, {kvcode.Code{Bits: 4}, 64 + 8, .1},
		{kvcode.Code{Bits: 4, Book: true}, 64 + 2, .11}, {kvcode.Code{Bits: 3, Book: true}, 48 + 2, .22},
		{kvcode.Code{Bits: 2, Book: true}, 32 + 2, .4},
	} {
		form := Coded{c.code}
		require.Equal(t, BlockSize*c.bytes, form.Bytes(128))
		for _, features := range []int{1, 33, 64, 80, 96, 128, 1100} {
			r := rand.New(rand.NewPCG(1, uint64(features)))
			rows, got := make([]float32, BlockSize*features), make([]float32, BlockSize*features)
			for i := range rows {
				rows[i] = float32(r.NormFloat64() + 3*float64(i%features%2)) // features that are not alike
			}
			block, alone := make([]byte, form.Bytes(features)), make([]byte, form.Bytes(features))
			form.Put(block, features, 0, rows)
			for _, at := range r.Perm(BlockSize) {
				form.Put(alone, features, at, rows[at*features:][:features])
			}
			require.Equal(t, alone, block, "codes are a function of the row")
			form.Get(got, block, features, 0)
			apart, all := 0.0, 0.0
			for i, x := range rows {
				apart, all = apart+math.Pow(float64(x-got[i]), 2), all+float64(x)*float64(x)
			}
			if features >= 64 {
				require.Less(t, math.Sqrt(apart/all), c.apart, "%v of %d", form, features)
			}
			some := make([]float32, 3*features)
			form.Get(some, block, features, 7)
			require.Equal(t, got[7*features:10*features], some)
		}
	}
}

// TestCodedNoAlloc: a block is coded and read without an allocation, whatever its matrix and codebook.
func TestCodedNoAlloc(t *testing.T) {
	for _, code := range []kvcode.Code{{Bits: 4}, {Bits: 3, Book: true}} {
		for _, features := range []int{96, 128, 320} {
			form, rows := Coded{code}, make([]float32, BlockSize*features)
			block := make([]byte, form.Bytes(features))
			form.Put(block, features, 0, rows)
			require.Zero(t, testing.AllocsPerRun(5, func() {
				form.Put(block, features, 0, rows)
				form.Get(rows, block, features, 0)
			}), "%+v, %d", code, features)
		}
	}
}
