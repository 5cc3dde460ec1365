//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// staging is a driver that counts the buffers which the host writes.
type staging struct {
	borrowed
	written int
}

func (s *staging) Allocate(m driver.Memory, size uint64) (*driver.Buffer, error) {
	if m == driver.Staging {
		s.written++
	}
	return s.device.Allocate(m, size)
}

// TestSlabs: what lies in slabs, at any offset, goes to the device without a copy of the host's, and is the same there.
func TestSlabs(t *testing.T) {
	g := open(t)
	if g.d.Facts.HostAlignment == 0 {
		t.Skip("the device imports no memory")
	}
	b := &staging{borrowed: borrowed{device: newDevice(g.lib, g.d, g.k)}}
	d, err := exec.New(func() (driver.Device, error) { return b, nil })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	m := small(t)
	memory, err := mem.Alloc(8 << 20)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mem.Free(memory)) })
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 4, MaxWanted: 4, Flight: d.Traits().Flight},
		Weights: backend.Uploaded{Slabs: memory}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })

	straight, others, before := 0, []ir.Ref(nil), b.written
	for r, data := range m.Weights {
		if m.Program.Weights[r].Use&ir.Vector != 0 || len(data) > len(memory)/2 || formats[m.Types[r]].split > 0 {
			others = append(others, ir.Ref(r))
			continue
		}
		there := memory[1000+34*r:][:len(data)]
		copy(there, data)
		require.NoError(t, x.Upload(ir.Ref(r), 0, there))
		clear(there)
		straight++
	}
	require.Greater(t, straight, 3)
	require.Equal(t, before, b.written, "the host copied what the device can read")
	for _, r := range others {
		require.NoError(t, x.Upload(r, 0, m.Weights[r]))
	}
	tokens := []int32{1, 97, 3, 4}
	imported := &backendtest.Running{Model: x, T: t, Of: m}
	require.Equal(t, backendtest.Run(t, g.device(), m, 4).Logits(tokens, 4), imported.Logits(tokens, 4))
}
