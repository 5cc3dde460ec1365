package backend

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// whole is units without floats, as devices compute it.
func whole(x float32, s DrawScale) int64 {
	b := math.Float32bits(x) & (1<<31 - 1)
	u, exp := uint64(b&(1<<23-1)), int32(b>>23)
	if exp > 0 {
		u |= 1 << 23
	}
	switch up := max(exp, 1) - 150 + s.Shift; {
	case up >= 32:
		u = uint64(b) << 32
	case up >= 0:
		u <<= up
	default:
		u >>= min(-up, 24)
	}
	if x < 0 {
		return -int64(u)
	}
	return int64(u)
}

// finite draws floats of all sizes, and such as logits are.
func finite(t *rapid.T, name string) float32 {
	return rapid.OneOf(rapid.Float32Range(-40, 40),
		rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32),
		rapid.Map(rapid.Uint32Range(0, 0xfeffffff), func(b uint32) float32 {
			return math.Float32frombits(b &^ (1 << 30)) // below 2
		}),
		rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32}),
	).Draw(t, name)
}

func drawnScale(t *rapid.T) (float64, DrawScale) {
	temp := rapid.OneOf(rapid.Float64Range(0.05, 3), rapid.Float64Range(math.SmallestNonzeroFloat32, 200),
		rapid.SampledFrom([]float64{1, math.SmallestNonzeroFloat32, 1e-20, 100, 5e-324})).Draw(t, "temperature")
	return temp, ScaleOf(temp)
}

// TestUnitsAreWhole: the host's way through float64 is the one of devices without it, for every number and scale.
func TestUnitsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, s := drawnScale(t)
		x := finite(t, "logit")
		w := NewWeigher(x, s)
		require.Equal(t, whole(x, s), w.best)
		require.Equal(t, uint64(WeightOne), WeightOf(w.Surprise(x)))
	})
}

// TestSurpriseFollowsLogits: a lower logit never has a smaller surprise or a larger weight, and where the logits of a
// row are near each other the weight is what float64 makes of it.
func TestSurpriseFollowsLogits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		temp, s := drawnScale(t)
		all := []float32{finite(t, "a"), finite(t, "b"), finite(t, "c")}
		best, middle, last := max(all[0], all[1], all[2]), all[0], min(all[0], all[1], all[2])
		for _, x := range all {
			if x != best && x != last {
				middle = x
			}
		}
		w := NewWeigher(best, s)
		if middle != best && middle != last {
			require.LessOrEqual(t, w.Surprise(middle), w.Surprise(last))
		}
		got, want := w.Surprise(last), (float64(best)-float64(last))/temp*math.Log2E
		if want < 100 {
			require.InDelta(t, want, float64(got)*0x1p-56, 3e-7) // two units, and the factor's 2⁻³¹ of a hundred
		} else {
			require.Zero(t, WeightOf(got))
		}
	})
}

func TestWeightOf(t *testing.T) {
	one := func(x *big.Float) uint64 { // to the nearest
		n, _ := new(big.Float).Add(x, big.NewFloat(0.5)).Uint64()
		return n
	}
	root := new(big.Float).SetPrec(200).SetInt64(2) // 2^(1/32), by five square roots
	for range 5 {
		root.Sqrt(root)
	}
	for i, x := 0, new(big.Float).SetPrec(200).SetInt64(1<<31); i < len(roots); i++ {
		require.Equal(t, one(x), roots[i])
		x.Quo(x, root)
	}
	ln2, term := math.Ln2, 1.0
	for n, c := range series {
		term *= ln2 / float64(n+1)
		require.InDelta(t, term*(1<<32), float64(c), 0.5)
	}
	require.EqualValues(t, WeightOne, WeightOf(0))
	require.EqualValues(t, WeightOne/2, WeightOf(1<<56))
	require.EqualValues(t, 1, WeightOf(42<<56))
	require.Zero(t, WeightOf(42<<56+1<<30))
	require.Zero(t, WeightOf(math.MaxUint64))
	for i := range uint64(200000) {
		s := i * (43 << 56 / 200000)
		want := math.Exp2(-float64(s)*0x1p-56) * WeightOne
		require.InDelta(t, want, WeightOf(s), 1+want*0x1p-29)
	}
	// It falls within a piece of the table, for the series does; and from piece to piece, and power to power.
	for whole := range uint64(43) {
		for i := range uint64(len(roots)) {
			next := whole<<56 + (i+1)<<51
			for _, d := range []uint64{1 << 24, 2 << 24, 5 << 24, 1 << 40} {
				require.GreaterOrEqual(t, WeightOf(next-d), WeightOf(next))
				require.GreaterOrEqual(t, WeightOf(next), WeightOf(next+d))
			}
		}
	}
}

func TestShares(t *testing.T) {
	require.EqualValues(t, AllShare, ShareOf(1))
	require.EqualValues(t, uint32(math.MaxUint32-255), ShareOf(math.Nextafter32(1, 0)))
	require.EqualValues(t, 1<<31, ShareOf(0.5))
	require.EqualValues(t, 1, ShareOf(math.SmallestNonzeroFloat32))
	require.Zero(t, ShareOf(0))
	rapid.Check(t, func(t *rapid.T) {
		share, all := rapid.Uint32().Draw(t, "share"), rapid.Uint64().Draw(t, "all")
		exact := new(big.Int).Mul(big.NewInt(int64(share)), new(big.Int).SetUint64(all))
		exact.Add(exact, big.NewInt(math.MaxUint32)).Rsh(exact, 32)
		require.Equal(t, exact.Uint64(), LeastSum(share, all))
		require.LessOrEqual(t, LeastSum(share, all), all)

		p := rapid.Float32Range(math.SmallestNonzeroFloat32, 1).Draw(t, "p")
		require.InDelta(t, -math.Log2(float64(p)), float64(SurpriseOf(p))*0x1p-56, 1e-9)
	})
	require.Zero(t, SurpriseOf(1))
	require.EqualValues(t, 1<<56, SurpriseOf(0.5))
	require.EqualValues(t, uint64(149<<56), SurpriseOf(math.SmallestNonzeroFloat32))
	require.EqualValues(t, uint64(math.MaxUint64), SurpriseOf(0))
}

// TestDrawsNeverChange: the bits that a seed stands for are part of the product: recorded tokens must come again on any
// machine. Whoever changes them raises the version of token traces.
func TestDrawsNeverChange(t *testing.T) {
	require.Equal(t, uint64(0xcc3d92f0c3d5adf7), Random(7, 9, 0))
	h := fnv.New64a()
	put := func(x uint64) { _, _ = h.Write(binary.LittleEndian.AppendUint64(nil, x)) }
	for i := range 20000 {
		temp := float32(i+1) / 9999
		w := NewWeigher(11.5, ScaleOf(float64(temp)))
		put(WeightOf(w.Surprise(11.5 - float32(i)/997)))
		put(SurpriseOf(temp / 3))
		put(LeastSum(ShareOf(temp/3), WeightOne+uint64(i)))
	}
	require.Equal(t, uint64(0x41c3dbb6710b0717), h.Sum64())
}
