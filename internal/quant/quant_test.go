package quant

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
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
	require.EqualError(t, Dequantize(Q8_K, make([]float32, 256), make([]byte, 292)),
		"Q8_K has no decoder yet: convert the tensor to a type that has one, such as Q8_0")
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
