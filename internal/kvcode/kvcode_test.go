package kvcode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBooks: the codebooks' positive levels and errors, to the digits of a table that was computed apart from this.
func TestBooks(t *testing.T) {
	for _, c := range []struct {
		d, bits int
		error   float64
		levels  []float64
	}{
		{64, 2, .11453, []float64{.45212, 1.49997}},
		{64, 3, .03339, []float64{.24375, .75066, 1.32934, 2.11131}},
		{64, 4, .00913, []float64{.12735, .38472, .65049, .93189, 1.23940, 1.59085, 2.02331, 2.64637}},
		{80, 2, .11511, []float64{.45225, 1.50206}},
		{80, 4, .00920, []float64{.12756, .38538, .65174, .93397, 1.24274, 1.59622, 2.03230, 2.66322}},
		{96, 3, .03377, []float64{.24420, .75244, 1.33417, 2.12472}},
		{128, 1, 1 - .79944*.79944, []float64{.79944}},
		{128, 2, .11600, []float64{.45245, 1.50519}},
		{128, 3, .03397, []float64{.24442, .75333, 1.33660, 2.13147}},
		{128, 4, .00931, []float64{.12787, .38638, .65362, .93710, 1.24777, 1.60434, 2.04593, 2.68886}},
		{192, 3, .03416, []float64{.24465, .75422, 1.33903, 2.13826}},
		{256, 4, .00941, []float64{.12813, .38721, .65519, .93971, 1.25199, 1.61117, 2.05741, 2.71057}},
		{512, 2, .11711, []float64{.45270, 1.50911}},
		{512, 4, .00945, []float64{.12826, .38763, .65597, .94103, 1.25411, 1.61460, 2.06320, 2.72154}},
	} {
		b := NewBook(c.d, c.bits)
		require.InDeltaSlice(t, c.levels, b.Levels, 6e-6, "%d features, %d bits", c.d, c.bits)
		require.InDelta(t, c.error, b.Error, 1e-5, "%d features, %d bits", c.d, c.bits)
	}
	for d := 1; d < 9; d++ {
		for _, x := range NewBook(d, 4).Levels {
			require.False(t, math.IsNaN(x) || x > math.Sqrt(float64(max(d, 2))), "%d features: %v", d, x)
		}
	}
}

// TestRotationIsOrthogonal: products of rows stay what they are, and Unrotate undoes Rotate, whatever their size.
func TestRotationIsOrthogonal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.OneOf(rapid.IntRange(1, 150), rapid.SampledFrom([]int{80, 96, 128, 192, 256, 512, 576})).Draw(t, "d")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a, b := gauss(r, d), gauss(r, d)
		before, back := dot(a, b), append([]float32{}, a...)
		Rotate(a)
		Rotate(b)
		require.InDelta(t, before, dot(a, b), 1e-4*float64(d))
		Unrotate(a)
		require.InDeltaSlice(t, back, a, 1e-4)
	})
}

// TestRotationSpreads: a row whose features are all alike, or of which one is large, has none that is large afterwards.
func TestRotationSpreads(t *testing.T) {
	for _, d := range []int{64, 80, 96, 128, 192, 256} {
		same, one := make([]float32, d), make([]float32, d)
		for i := range same {
			same[i] = 1
		}
		one[d/3] = 1
		Rotate(same)
		Rotate(one)
		for i := range same {
			require.InDelta(t, 0, same[i], 4.5, "%d features", d)
			want := 1 / math.Sqrt(float64(d))
			require.InDelta(t, want, math.Abs(float64(one[i])), 1e-6, "%d features: a Hadamard matrix", d)
		}
	}
}

// TestErrorIsThatOfTheory: codes of random rows have the error of their codebook, which whole units and lengths that
// are exact change by 1.5 % at most; even levels have less than a codebook of a bit less.
func TestErrorIsThatOfTheory(t *testing.T) {
	for _, d := range []int{128, 256} {
		for bits := 2; bits <= 4; bits++ {
			got, want := meanError(Code{bits, true}, d), NewBook(d, bits).Error
			// A row whose length is corrected is longer than the nearest by 1/√(1−e): e of it comes back as e + e²/4.
			require.InEpsilon(t, 2*(1-math.Sqrt(1-want)), got, 0.015, "%d features, %d bits", d, bits)
		}
		require.Less(t, meanError(Code{Bits: 4}, d), .0075, "%d features", d)
		require.Less(t, meanError(Code{Bits: 5}, d), .0020, "%d features", d)
	}
}

func meanError(c Code, d int) (sum float64) {
	r := rand.New(rand.NewPCG(3, uint64(d)))
	const rows = 2000
	for range rows {
		x := gauss(r, d)
		got := coded(c, x)
		apart := 0.0
		for i := range x {
			apart += math.Pow(float64(x[i]-got[i]), 2)
		}
		sum += apart / dot(x, x) / rows
	}
	return sum
}

func coded(c Code, x []float32) []float32 {
	codes, scales, got := make([]byte, len(x)), make([]uint16, c.Scales(len(x))), make([]float32, len(x))
	c.Encode(codes, scales, x)
	packed, again := make([]byte, c.PackedBytes(len(x))), make([]byte, len(x))
	c.Pack(packed, codes)
	c.Unpack(again, packed)
	c.Decode(got, again, scales)
	return got
}

// FuzzCode: any row is coded without a panic, all codes are below 2^bits, and packed ones are found again.
func FuzzCode(f *testing.F) {
	f.Add(uint64(1), 128, 4, true, float32(1))
	f.Add(uint64(2), 33, 5, false, float32(1e-8))
	f.Add(uint64(3), 1, 3, true, float32(0))
	f.Add(uint64(4), 80, 4, false, float32(60000))
	f.Fuzz(func(t *testing.T, seed uint64, d, bits int, book bool, size float32) {
		if d < 1 || d > 300 || bits < 2 || bits > 5 || book && bits > 4 || !(math.Abs(float64(size)) < 1e4) {
			return
		}
		c, x := Code{bits, book}, gauss(rand.New(rand.NewPCG(seed, 1)), d)
		for i := range x {
			x[i] *= size
		}
		codes, scales := make([]byte, d), make([]uint16, c.Scales(d))
		c.Encode(codes, scales, x)
		for _, code := range codes {
			require.Less(t, int(code), 1<<bits)
		}
		packed, again := make([]byte, c.PackedBytes(d)), make([]byte, d)
		c.Pack(packed, codes)
		c.Unpack(again, packed)
		require.Equal(t, codes, again)
		for _, y := range coded(c, x) {
			require.False(t, math.IsNaN(float64(y)), fmt.Sprint(x))
		}
	})
}

func gauss(r *rand.Rand, d int) []float32 {
	x := make([]float32, d)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
