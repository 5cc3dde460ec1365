package backend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
)

func TestKVTypes(t *testing.T) {
	l := ir.KVLayer{KVHeads: 2, KDim: 80, VDim: 64}
	for name, bytes := range map[string]int{"f32": 4 * 144, "f16": 2 * 144, "q8": 144 + 4*(3+1)} {
		typ, err := ParseKV(name)
		require.NoError(t, err)
		require.Equal(t, name, typ.String())
		require.NoError(t, typ.Check())
		require.Equal(t, 64*2*bytes, typ.BlockBytes(l))
	}
	typ, err := ParseKV("q8_0")
	require.NoError(t, err)
	require.Equal(t, KVQ8, typ)
	for _, name := range []string{"", "Q8", "f8"} {
		_, err := ParseKV(name)
		require.EqualError(t, err, `KV type "`+name+`": want f32, f16 or q8`)
	}
	for _, typ := range []KVType{0, 4} {
		require.Error(t, typ.Check())
	}
	require.Equal(t, "KV type 9", KVType(9).String())
}
