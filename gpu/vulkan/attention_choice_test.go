//go:build cgo && linux

package vulkan

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// TestChoose: a device measures each shape that has several kernels once, keeps what came, and goes by what was kept; a
// file of other kernels, or none that can be read, says nothing.
func TestChoose(t *testing.T) {
	dir, g := t.TempDir(), open(t)
	tiled := Heads{Query: 2, KV: 1, Features: 32, Values: 64, Cache: backend.KVQ8}
	shapes := []Heads{tiled, tiled, {Query: 3, KV: 1, Features: 32, Values: 64, Cache: backend.KVQ8},
		{Query: 2, KV: 1, Features: 64}}
	again := func(data []byte) *Device { // as another process finds it
		d := g.with(t).device()
		d.kernels, d.cache = NewKernels(g.d), dir
		t.Cleanup(d.kernels.Close)
		if data != nil {
			require.NoError(t, os.WriteFile(choicesPath(dir, &g.d.Facts), data, 0o600))
		}
		d.loadChoices()
		return d
	}
	d := again(nil)
	require.Empty(t, d.kernels.tiled)
	d.choose(shapes)
	require.Len(t, d.kernels.tiled, 1, "no others have two kernels with the same bits")
	sooner, known := d.kernels.tiled[tiled.shape()]
	require.True(t, known)
	require.Equal(t, sooner, d.kernels.takesTiles(&tiled, &Attention{N: fewColumns + 1}))
	require.False(t, d.kernels.takesTiles(&tiled, &Attention{N: fewColumns}))
	kept, err := os.ReadFile(choicesPath(dir, &g.d.Facts))
	require.NoError(t, err)

	other := bytes.Replace(kept, []byte(map[bool]string{true: "true", false: "false"}[sooner]),
		[]byte(map[bool]string{true: "false", false: "true"}[sooner]), 1)
	d = again(other)
	d.choose(shapes) // it knows
	require.Equal(t, !sooner, d.kernels.takesTiles(&tiled, &Attention{N: fewColumns + 1}))

	for _, bad := range [][]byte{kept[:len(kept)-2], bytes.Replace(kept, []byte(attendSum()), []byte("0123456789abcdef"), 1)} {
		require.Empty(t, again(bad).kernels.tiled)
	}
}

// TestChooseSame: both ways of a shape compute the same from what they are measured with, which is not nothing.
func TestChooseSame(t *testing.T) {
	g := open(t)
	d := g.device()
	h := Heads{Query: 2, KV: 1, Features: 64, Cache: backend.KVF32}
	memory := buffers{d: g.d}
	defer memory.free()
	a, to, err := d.someAttention(&h, &memory)
	require.NoError(t, err)
	for i, splits := range []func(*vk.Recording, *Heads, *Attention) error{g.k.attendSplits, g.k.attendTogether} {
		a.Y = to[i].Address
		require.NoError(t, d.queue.once(func(r *vk.Recording) error {
			require.NoError(t, splits(r, &h, a))
			require.NoError(t, g.k.mergeAny(r, &h, a))
			r.BarrierAll()
			r.BarrierToHost()
			return nil
		}))
	}
	require.Equal(t, to[0].Bytes, to[1].Bytes)
	values := words[float32](to[0], 0, attentionRows*128)
	require.NotEqual(t, values[:128], values[128:256], "rows differ")
	for _, v := range values {
		require.Less(t, v*v, float32(1e12))
		require.NotZero(t, v)
	}
}
