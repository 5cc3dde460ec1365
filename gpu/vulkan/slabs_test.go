//go:build cgo && linux

package vulkan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// TestSlabs: what lies in slabs, at any offset, goes to the device without a copy of the host's, and is the same there.
func TestSlabs(t *testing.T) {
	d := open(t).device()
	if d.facts.HostAlignment == 0 {
		t.Skip("the device imports no memory")
	}
	m := small(t)
	memory, err := mem.Alloc(8 << 20)
	require.NoError(t, err)
	defer func() { require.NoError(t, mem.Free(memory)) }()
	c := backend.Config{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 4, MaxWanted: 4,
		Flight: d.Traits().Flight, Slabs: memory}
	b, err := d.Compile(m.Bound, c)
	require.NoError(t, err)
	x := b.(*model)
	defer func() { require.NoError(t, x.Close()) }()
	require.NotNil(t, x.slabs.buffer, "the slabs were not imported")

	straight := 0
	for r, want := range m.Weights {
		w := &x.weights[r]
		if w.matrix == nil || len(want) > len(memory)/2 || formats[w.typ].split > 0 {
			continue
		}
		data := memory[1000+34*r:][:len(want)]
		copy(data, want)
		require.NoError(t, x.Upload(ir.Ref(r), 0, data))
		require.False(t, d.staged(), "%s was copied by the host", w.name)
		got := packed(t, x, w)
		require.NoError(t, x.Upload(ir.Ref(r), 0, want)) // from elsewhere
		require.Equal(t, packed(t, x, w), got, w.name)
		d.unstage()
		straight++
	}
	require.Greater(t, straight, 3)
}

// TestSlabsHold: data counts as lying in slabs if all of it does.
func TestSlabsHold(t *testing.T) {
	all := make([]byte, 300)
	s := slabs{all[100:200:200], &vk.Buffer{}}
	require.True(t, s.holds(all[100:200]))
	require.True(t, s.holds(all[150:151]))
	require.EqualValues(t, 50, s.at(all[150:160]))
	for _, other := range [][]byte{all[:50], all[99:150], all[150:201], all[200:250], all[50:250]} {
		require.False(t, s.holds(other))
	}
	s.buffer = nil
	require.False(t, s.holds(all[100:200]))
}

// staged says whether the host has written to memory that weights travel through.
func (v *Device) staged() (any bool) {
	for range uploadStages {
		s := <-v.stages
		any = any || s.host != nil
		v.stages <- s
	}
	return any
}

// unstage forgets that.
func (v *Device) unstage() {
	for range uploadStages {
		s := <-v.stages
		s.free(v.d)
		v.stages <- s
	}
}

// packed is a matrix as it lies on the device.
func packed(t *testing.T, m *model, w *weight) []byte {
	t.Helper()
	at := slices.IndexFunc(m.memory.all, func(b *vk.Buffer) bool { return b.Address == w.matrix.Address })
	require.GreaterOrEqual(t, at, 0)
	n := w.matrix.Bytes()
	b, err := m.device.d.Allocate(vk.Staging, n)
	require.NoError(t, err)
	defer m.device.d.Free(b)
	require.NoError(t, m.device.queue.once(func(r *vk.Recording) error {
		r.BarrierAll()
		r.Copy(b, 0, m.memory.all[at], 0, n)
		r.BarrierToHost()
		return nil
	}))
	return slices.Clone(b.Bytes)
}
