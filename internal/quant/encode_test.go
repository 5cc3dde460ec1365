package quant

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// encoders are all types that can be written.
func encoders() (types []Type) {
	for id := range formats {
		if HasEncoder(Type(id)) {
			types = append(types, Type(id))
		}
	}
	return types
}

// TestEncoders: what can be read can be written.
func TestEncoders(t *testing.T) {
	for id := range formats {
		require.Equal(t, HasCodec(Type(id)), HasEncoder(Type(id)), Type(id))
	}
}

// roundTrip is what src decodes to after encoding.
func roundTrip(t require.TestingT, typ Type, src, importance []float32) []float32 {
	size, err := typ.RowBytes(len(src))
	require.NoError(t, err)
	packed, y := make([]byte, size), make([]float32, len(src))
	require.NoError(t, QuantizeRow(typ, packed, src, importance))
	require.NoError(t, Dequantize(typ, y, packed))
	return y
}

func TestQuantizeRefuses(t *testing.T) {
	require.EqualError(t, Quantize(Q8_0, make([]byte, 34), make([]float32, 31)),
		"Q8_0 comes in blocks of 32 values, and 31 is not a multiple of it")
	require.EqualError(t, Quantize(Q8_K, make([]byte, 292), make([]float32, 256)),
		"Q8_K has no encoder: choose a type that has one, such as Q4_K or Q8_0")
	bad := make([]float32, 32)
	bad[3] = float32(math.Inf(1))
	require.EqualError(t, Quantize(Q4_0, make([]byte, 18), bad), "value 3 is +Inf: Q4_0 holds numbers up to 5.24e+05")

	dst, src := make([]byte, 18), make([]float32, 32)
	require.EqualError(t, QuantizeRow(Q4_0, dst, src, src[:31]),
		"31 importances for a row of 32 values: give one for each")
	require.EqualError(t, QuantizeRow(Q4_0, dst, src, bad), "importance 3 is +Inf: it must be finite and not negative")
	bad[3] = -1
	require.EqualError(t, QuantizeRow(Q4_0, dst, src, bad), "importance 3 is -1: it must be finite and not negative")
}

// worst is the largest root mean square error of a block, relative to its largest magnitude.
var worst = map[Type]float64{
	F32: 0, F16: 0x1p-11, BF16: 0x1p-8, Q8_0: 0.6 / 127, Q4_0: 1.01 / 8, Q5_0: 1.01 / 16, Q4_1: 1.01 / 15, Q5_1: 1.01 / 31,
	Q2_K: 0.4, Q3_K: 0.2, Q4_K: 0.09, Q5_K: 0.05, Q6_K: 0.025, IQ4_NL: 0.1, IQ4_XS: 0.1, MXFP4: 0.2, NVFP4: 0.15,
	TQ1_0: 0.5, TQ2_0: 0.5, Q1_0: 0.5, Q2_0: 0.5,
	IQ1_S: 0.6, IQ1_M: 0.6, IQ2_XXS: 0.6, IQ2_XS: 0.6, IQ2_S: 0.6, IQ3_XXS: 0.5, IQ3_S: 0.3,
}

// TestQuantizeIsNear checks the error of encoding anything, with and without importance.
func TestQuantizeIsNear(t *testing.T) {
	weights := make([]float32, 256)
	for i := range weights {
		weights[i] = 1
	}
	for _, typ := range encoders() {
		t.Run(typ.String(), func(t *testing.T) {
			require.Contains(t, worst, typ)
			rapid.Check(t, func(t *rapid.T) {
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				size, tail := rapid.Float64Range(1, 100).Draw(t, "size"), rapid.Float64Range(0, 4).Draw(t, "tail")
				x := make([]float32, 256)
				for i := range x { // from two values through uniform ones to a few that stand out
					x[i] = float32(size * math.Pow(rng.Float64(), tail))
					if rng.IntN(2) == 0 {
						x[i] = -x[i]
					}
				}
				for _, importance := range [][]float32{nil, weights} {
					n := max(32, typ.Block())
					y := roundTrip(t, typ, x[:n], importance[:min(n, len(importance))])
					var most, sum float64
					for i, v := range y {
						most = max(most, math.Abs(float64(x[i])))
						sum += math.Pow(float64(x[i]-v), 2)
					}
					require.LessOrEqual(t, math.Sqrt(sum/float64(n)), worst[typ]*most+0x1p-22)
				}
			})
		})
	}
}

// TestImportance checks that the columns that matter come out better, at the cost of the others.
func TestImportance(t *testing.T) {
	for _, typ := range encoders() {
		if typ.Block() == 1 || typ == Q8_0 {
			continue
		}
		t.Run(typ.String(), func(t *testing.T) {
			x, importance := make([]float32, 4096), make([]float32, 4096)
			for i := range x { // a wide, lopsided and reproducible spread
				x[i] = float32(math.Sin(float64(i*i))*math.Exp(math.Sin(float64(i))) + 0.1)
				importance[i] = 1
				if i%8 == 0 {
					importance[i] = 50
				}
			}
			cost := func(y []float32) (weighted float64) {
				for i, v := range y {
					weighted += float64(importance[i]) * math.Pow(float64(x[i]-v), 2)
				}
				return weighted
			}
			require.Less(t, cost(roundTrip(t, typ, x, importance)), cost(roundTrip(t, typ, x, nil)))
			require.Equal(t, roundTrip(t, typ, x, nil), roundTrip(t, typ, x, nil))
		})
	}
}

// TestNothingMatters checks blocks of zeros and importances of zero.
func TestNothingMatters(t *testing.T) {
	for _, typ := range encoders() {
		n := max(32, typ.Block())
		x, zero := make([]float32, n), make([]float32, n)
		require.Equal(t, x, roundTrip(t, typ, x, nil), typ)
		require.Equal(t, x, roundTrip(t, typ, x, zero), typ)
		for i := range x {
			x[i] = 1
		}
		require.InDelta(t, 1, roundTrip(t, typ, x, zero)[0], 0.05, "%s", typ)
	}
}

// TestExtremes encodes the largest and the smallest numbers that a format takes.
func TestExtremes(t *testing.T) {
	for _, typ := range encoders() {
		if typ.Block() == 1 {
			continue
		}
		most := typ.Bounds().Most
		x := make([]float32, typ.Block())
		for _, size := range []float32{most, most / 2, 1e-5, 1e-38, 1e-45} {
			for i := range x {
				x[i] = float32(i%5-2) / 2 * size
			}
			for i, y := range roundTrip(t, typ, x, nil) {
				require.LessOrEqual(t, abs(y-x[i]), size, "%s: value %d of size %v", typ, i, size)
			}
		}
		x[1] = math.Nextafter32(most, math.MaxFloat32)
		require.ErrorContains(t, Quantize(typ, make([]byte, typ.Bytes()), x), "value 1 is")
	}
}

// TestQuantizeAllocates one block of scratch a call, whatever the length.
func TestQuantizeAllocates(t *testing.T) {
	x := make([]float32, 4096)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
	}
	for _, typ := range encoders() {
		size, err := typ.RowBytes(len(x))
		require.NoError(t, err)
		packed := make([]byte, size)
		require.LessOrEqual(t, testing.AllocsPerRun(2, func() { _ = QuantizeRow(typ, packed, x, nil) }), 1.0, typ)
	}
}

func FuzzQuantize(f *testing.F) {
	f.Add(uint8(Q4_K), []byte("seed"), true)
	f.Fuzz(func(t *testing.T, id uint8, raw []byte, weighted bool) {
		typ := Type(id)
		if !HasEncoder(typ) {
			return
		}
		n := len(raw) / 8 / typ.Block() * typ.Block()
		values := make([]float32, 2*n)
		require.NoError(t, Dequantize(F32, values, raw[:8*n]))
		var importance []float32
		if weighted {
			importance = values[n:]
		}
		size, err := typ.RowBytes(n)
		require.NoError(t, err)
		packed := make([]byte, size)
		if QuantizeRow(typ, packed, values[:n], importance) == nil {
			decoded := make([]float32, n)
			require.NoError(t, Dequantize(typ, decoded, packed))
			for i, y := range decoded {
				require.False(t, typ.Block() > 1 && y-y != 0, "value %d of %v is %v", i, values[:n], y)
			}
		}
	})
}

// Two scales at once give the sums of each alone, to the bit, whatever lies between two numbers or beyond the last.
func TestSums2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := rapid.SampledFrom([]*codebook{bookNonlinear, bookFP4}).Draw(t, "book")
		border := rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-255, 255).Draw(t, "halves"))/2 + 1e-9*float64(rapid.IntRange(-1, 1).Draw(t, "side"))
		})
		x := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-127.9, 127.9), border), 1, 32).Draw(t, "values")
		w := rapid.SliceOfN(rapid.Float64Range(0, 1e6), len(x), len(x)).Draw(t, "weights")
		r := &run{x: x, w: w, wx: make([]float64, len(x))}
		for i, v := range x {
			r.wx[i] = w[i] * v
		}
		var scales [2]float64
		for i := range scales {
			scales[i] = rapid.OneOf(rapid.Just(1.0), rapid.Float64Range(-2, 2)).Draw(t, "inverse scale")
		}
		xl, ll, xl2, ll2 := book.sums2(r, scales[0], scales[1])
		wantXL, wantLL := book.sums(r, scales[0])
		require.Equal(t, [2]float64{wantXL, wantLL}, [2]float64{xl, ll})
		wantXL, wantLL = book.sums(r, scales[1])
		require.Equal(t, [2]float64{wantXL, wantLL}, [2]float64{xl2, ll2})
	})
}

func BenchmarkQuantize(b *testing.B) {
	x := make([]float32, 1<<14)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
	}
	for _, typ := range encoders() {
		b.Run(typ.String(), func(b *testing.B) {
			size, err := typ.RowBytes(len(x))
			require.NoError(b, err)
			packed := make([]byte, size)
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				require.NoError(b, Quantize(typ, packed, x))
			}
		})
	}
}
