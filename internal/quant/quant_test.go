package quant

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	known := 0
	for id := Type(0); id < 100; id++ {
		if !id.Known() {
			require.False(t, HasCodec(id))
			require.Zero(t, id.Block()+id.Bytes())
			continue
		}
		known++
		got, ok := Parse(id.String())
		require.True(t, ok, id.String())
		require.Equal(t, id, got)
	}
	require.Equal(t, 35, known)
	require.Equal(t, "type 31", Type(31).String())
	_, ok := Parse("Q4_2")
	require.False(t, ok)
	lower, ok := Parse("q4_K")
	require.True(t, ok)
	require.Equal(t, Q4_K, lower)
}

func TestRowBytes(t *testing.T) {
	n, err := Q4_K.RowBytes(512)
	require.NoError(t, err)
	require.Equal(t, 288, n)
	n, err = F32.RowBytes(0)
	require.NoError(t, err)
	require.Zero(t, n)

	for _, c := range []struct {
		typ  Type
		n    int
		want string
	}{
		{Q4_K, 100, "Q4_K comes in blocks of 256 values, and 100 is not a multiple of it"},
		{Q8_0, -32, "Q8_0 comes in blocks of 32 values, and -32 is not a multiple of it"},
		{F64, math.MaxInt / 4, "F64: 2305843009213693951 values need more bytes than this machine can address"},
		{Type(36), 32, "type 36 is not a known ggml type: its size is unknown"},
	} {
		_, err := c.typ.RowBytes(c.n)
		require.EqualError(t, err, c.want)
	}
}

func TestLengthsAreChecked(t *testing.T) {
	require.EqualError(t, Dequantize(Q4_0, make([]float32, 32), make([]byte, 17)),
		"Q4_0: 32 values take 18 bytes, not 17")
	require.EqualError(t, Quantize(Q8_0, make([]byte, 34), make([]float32, 31)),
		"Q8_0 comes in blocks of 32 values, and 31 is not a multiple of it")
	require.EqualError(t, Dequantize(IQ1_S, make([]float32, 256), make([]byte, 50)),
		"IQ1_S has no decoder yet: convert the tensor to a type that has one, such as Q8_0")
	require.EqualError(t, Quantize(Q4_K, make([]byte, 144), make([]float32, 256)),
		"Q4_K has no encoder: use F32, F16, BF16, Q8_0 or Q4_0")
	bad := make([]float32, 32)
	bad[3] = float32(math.Inf(1))
	require.EqualError(t, Quantize(Q4_0, make([]byte, 18), bad), "value 3 is +Inf: Q4_0 holds finite numbers only")
}

// TestQuantizeIsNear checks that decoding an encoded block is within half a step of what was encoded.
func TestQuantizeIsNear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32Range(-8, 8), 32, 32).Draw(t, "x")
		most := 0.0
		for _, v := range x {
			most = max(most, math.Abs(float64(v)))
		}
		for typ, step := range map[Type]float64{
			F32: 0, F16: most * 0x1p-10, BF16: most * 0x1p-7, Q8_0: most / 127 * 1.1, Q4_0: most / 8 * 2.01,
		} {
			size, err := typ.RowBytes(32)
			require.NoError(t, err)
			packed, y := make([]byte, size), make([]float32, 32)
			require.NoError(t, Quantize(typ, packed, x))
			require.NoError(t, Dequantize(typ, y, packed))
			for i := range x {
				require.InDelta(t, x[i], y[i], step/2+0x1p-24, "%s: value %d of %v", typ, i, x)
			}
		}
	})
}

func FuzzDequantize(f *testing.F) {
	f.Add(uint8(Q4_K), []byte("seed"))
	f.Fuzz(func(t *testing.T, id uint8, raw []byte) {
		typ := Type(id)
		if !HasCodec(typ) {
			return
		}
		blocks := len(raw) / typ.Bytes()
		require.NoError(t, Dequantize(typ, make([]float32, blocks*typ.Block()), raw[:blocks*typ.Bytes()]))
	})
}
