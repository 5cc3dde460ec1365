//go:build cgo && linux

package vulkan

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// TestChoose: a device measures each shape that has several kernels once, keeps what came, and goes by what was kept; a
// file of other kernels, or none that can be read, says nothing.
func TestChoose(t *testing.T) {
	dir, g := t.TempDir(), open(t)
	tiled := kernel.Heads{Query: 2, KV: 1, Features: 32, Values: 64, Cache: backend.KVQ8.Format}
	shapes := []kernel.Heads{tiled, tiled, {Query: 3, KV: 1, Features: 32, Values: 64, Cache: backend.KVQ8.Format},
		{Query: 2, KV: 1, Features: 64}}
	again := func(data []byte) *Kernels { // as another process finds it
		k := NewKernels(g.d)
		k.choices = choicesPath(dir, &g.d.Facts)
		t.Cleanup(k.Close)
		if data != nil {
			require.NoError(t, os.WriteFile(k.choices, data, 0o600))
		}
		k.loadChoices()
		return k
	}
	k := again(nil)
	require.Empty(t, k.tiled)
	k.Tune(shapes, g.bench())
	require.Len(t, k.tiled, 1, "no others have two kernels with the same bits")
	sooner, known := k.tiled[tiled.String()]
	require.True(t, known)
	require.Equal(t, sooner, k.takesTiles(&tiled, &kernel.Attention{N: kernel.FewColumns + 1}))
	require.False(t, k.takesTiles(&tiled, &kernel.Attention{N: kernel.FewColumns}))
	kept, err := os.ReadFile(choicesPath(dir, &g.d.Facts))
	require.NoError(t, err)

	other := bytes.Replace(kept, []byte(map[bool]string{true: "true", false: "false"}[sooner]),
		[]byte(map[bool]string{true: "false", false: "true"}[sooner]), 1)
	k = again(other)
	k.Tune(shapes, nil) // it knows
	require.Equal(t, !sooner, k.takesTiles(&tiled, &kernel.Attention{N: kernel.FewColumns + 1}))

	for _, bad := range [][]byte{kept[:len(kept)-2], bytes.Replace(kept, []byte(attendSum()), []byte("0123456789abcdef"),
		1)} {
		require.Empty(t, again(bad).tiled)
	}
}

// TestChooseSame: both ways of a shape compute the same from what they are measured with, which is not nothing.
func TestChooseSame(t *testing.T) {
	g := open(t)
	h := kernel.Heads{Query: 2, KV: 1, Features: 64, Cache: backend.KVF32.Format}
	on := g.bench()
	defer on.Free()
	a, to, err := someAttention(&h, on)
	require.NoError(t, err)
	for i, splits := range []func(*vk.Recording, *kernel.Heads, *kernel.Attention) error{g.k.attendSplits,
		g.k.attendTogether} {
		a.Y = to[i].Address
		require.NoError(t, on.Once(func(to driver.Recording) error {
			r := to.(*recording).Recording
			require.NoError(t, splits(r, &h, a))
			require.NoError(t, g.k.mergeAny(r, &h, a))
			r.BarrierAll()
			r.BarrierToHost()
			return nil
		}))
	}
	require.Equal(t, to[0].Bytes, to[1].Bytes)
	values := words[float32](to[0], 0, kernel.AttentionRows*128)
	require.NotEqual(t, values[:128], values[128:256], "rows differ")
	for _, v := range values {
		require.Less(t, v*v, float32(1e12))
		require.NotZero(t, v)
	}
}

// bench is a driver.Bench of the device under test.
type bench struct {
	g   *gpu
	d   *device
	all []*driver.Buffer
}

func (g *gpu) bench() *bench { return &bench{g: g, d: newDevice(g.lib, g.d, g.k)} }

func (b *bench) Take(m driver.Memory, size uint64) (*driver.Buffer, error) {
	x, err := b.d.Allocate(m, size)
	b.all = append(b.all, x)
	return x, err
}

func (b *bench) Free() { b.d.Free(b.all...); b.all = nil }

func (b *bench) Once(record func(driver.Recording) error) (err error) {
	b.g.run(func(r *vk.Recording) { err = record(&recording{r}) })
	return err
}

func (b *bench) Pass(record func(driver.Recording) error) (time.Duration, bool, error) {
	began := time.Now() // a device that is a CPU has no better clock
	err := b.Once(record)
	return time.Since(began), true, err
}
