package quant

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRandom: values decode to what was asked for, whatever the type, and the same seed gives the same bytes.
func TestRandom(t *testing.T) {
	for id := range formats {
		typ := Type(id)
		if !HasCodec(typ) {
			continue
		}
		const blocks, dev = 4096, 0.0125
		data := make([]byte, blocks*typ.Bytes())
		require.NoError(t, Random(typ, data, dev, rand.New(rand.NewPCG(1, 2))), typ)
		values := make([]float32, blocks*typ.Block())
		require.NoError(t, Dequantize(typ, values, data), typ)
		var sum, squares float64
		for _, x := range values {
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
		got := math.Sqrt(squares / float64(len(values)))
		within := 0.04 // the rounding of scales, and of chance
		if typ == MXFP4 {
			within = math.Sqrt2 - 1 // its scales are powers of two
		}
		if typ == NVFP4 {
			within = 0.2 // its scales have 4 bits, and small ones fewer
		}
		require.InEpsilon(t, dev, got, within, "%s", typ)
		require.Less(t, math.Abs(sum)/float64(len(values)), dev/10, "%s", typ)

		again := make([]byte, len(data))
		require.NoError(t, Random(typ, again, dev, rand.New(rand.NewPCG(1, 2))), typ)
		require.Equal(t, data, again, typ)
	}
}

func TestRandomRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	require.EqualError(t, Random(Q4_0, make([]byte, 17), 1, r), "Q4_0: 17 bytes are not whole blocks")
	require.EqualError(t, Random(Type(5), nil, 1, r), "type 5: 0 bytes are not whole blocks")
	require.EqualError(t, Random(I8, make([]byte, 1), 1, r), "I8: cannot make random values of this type")
}
