package kernel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// TestCacheBytes: caches on cards take at most 5 % more than their forms' bits, in whole blocks of 16 bytes; 7 % more
// where features are no multiple of 32.
func TestCacheBytes(t *testing.T) {
	for _, features := range []int{64, 80, 96, 128, 192, 256, 512, 576} {
		for _, name := range backend.KVNamesOfV() {
			kv, err := backend.MixKV("q4", name)
			require.NoError(t, err)
			if same, err := backend.ParseKV(name); err == nil {
				kv = same
			}
			h := Heads{KV: 3, Features: features, Cache: kv.Format}
			stated := float64(kv.Format.BlockBytes(ir.KVLayer{KVHeads: h.KV, KDim: features, VDim: features}))
			taken, most := float64(h.KeyBytes(1)+h.ValueBytes(1)), 1.05
			if features%32 != 0 {
				most = 1.07
			}
			require.LessOrEqual(t, taken/stated, most, fmt.Sprint(name, " ", features))
			require.GreaterOrEqual(t, taken, stated)
			require.Zero(t, (h.KeyBytes(1)/3)%16+(h.ValueBytes(1)/3)%16)
		}
	}
}

// TestKinds: each form has a number of its own, and CodesOf says what kernels must know of its codes.
func TestKinds(t *testing.T) {
	seen := map[uint32]bool{0: true}
	for _, name := range []string{"f16", "f32", "q8", "q5", "q4", "tq4", "tq3"} {
		kv, err := backend.ParseKV(name)
		require.NoError(t, err)
		kind := KeyKind(kv.K.Kept())
		require.False(t, seen[kind])
		seen[kind] = true
		require.Equal(t, kind, ValueKind(kv.V.Kept()))
		require.Equal(t, map[bool]uint32{false: kind}[kv.Seals()], CacheKind(kv.Format))
	}
	kv, err := backend.MixKV("f16", "tq2")
	require.NoError(t, err)
	require.Zero(t, KeyKind(kv.V.Kept()), "for values alone")
	require.Zero(t, KeyKind(nil))
	codes, ok := CodesOf(kv.V.Kept(), 128)
	require.True(t, ok)
	require.EqualValues(t, 60<<8|18, codes.Levels, "their ratio is that of 1.505 and 0.4525")
	require.InDelta(t, 60/1.50519, codes.Unit, 0.1)
	_, ok = CodesOf(kv.K.Open, 128)
	require.False(t, ok)
}
