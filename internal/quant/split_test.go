package quant

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSplit puts together what was split, of random bits and of encoded numbers.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for typ := range Type(len(formats)) {
		if !CanSplit(typ) {
			require.Error(t, Split(typ, nil, nil, nil, nil), typ)
			continue
		}
		n := 40 * typ.Block()
		for _, random := range []bool{true, false} {
			src, want := make([]byte, 40*typ.Bytes()), make([]float32, n)
			if random {
				require.NoError(t, Random(typ, src, 1, r))
			} else {
				for i := range want {
					want[i] = float32(r.NormFloat64())
				}
				clear(want[:256])
				require.NoError(t, Quantize(typ, src, want), typ)
			}
			require.NoError(t, Dequantize(typ, want, src))
			codes, scales, lows := make([]int8, n), make([]float32, n/SplitRun), make([]float32, n/SplitRun)
			require.NoError(t, Split(typ, codes, scales, lows, src))
			for i, v := range want {
				got := float32(scales[i/SplitRun]*float32(codes[i])) - lows[i/SplitRun]
				require.Equal(t, v, got+0, "%s, value %d: %v·%d - %v", typ, i, scales[i/SplitRun], codes[i], lows[i/SplitRun])
			}
		}
	}
	require.ErrorContains(t, Split(Q8_0, make([]int8, 32), nil, nil, make([]byte, 34)), "32 values have 0 scales and 0 lows, want 2")
	require.Error(t, Split(Q8_0, make([]int8, 32), nil, nil, make([]byte, 33)))
}
