package backend

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMargins(t *testing.T) {
	margins := make([]int8, 4)
	for _, c := range []struct {
		keys []float32
		used int
		want []int8
	}{
		{[]float32{4, 1, 3, 2}, 2, []int8{21, -21, 7, -7}}, // the spread is 1.118, the cut 2.5
		{[]float32{1, 1, 1, 1}, 2, []int8{0, 0, 0, 0}},
		{[]float32{2, 1, 1, 0}, 2, []int8{23, 0, 0, -23}},     // the cut is between equals
		{[]float32{9, 0, 0, 0}, 1, []int8{18, -18, -18, -18}}, // the spread is 3.9
		{[]float32{1, 2, 3, 4}, 4, []int8{0, 14, 29, 43}},
		{[]float32{0, 0, 0, -9}, 1, []int8{0, 0, 0, MarginFloor}},
	} {
		Margins(margins, c.keys, c.used)
		require.Equal(t, c.want, margins, "%v", c.keys)
	}
}

// TestCut: so many keys are above the cut, if no two are equal.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.Float32Range(-100, 100), 2, 40, rapid.ID).Draw(t, "keys")
		used := rapid.IntRange(1, len(keys)-1).Draw(t, "used")
		cut := cutOf(keys, used)
		slices.Sort(keys)
		below, above := float64(keys[len(keys)-used-1]), float64(keys[len(keys)-used])
		require.Equal(t, (below+above)/2, cut)
	})
}
