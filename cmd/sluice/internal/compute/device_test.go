package compute

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/backend"
)

// closing is a device that says whether it was closed.
type closing struct {
	backend.Device
	memory backend.Reach
	closed bool
}

func (*closing) Name() string             { return "Card" }
func (d *closing) Traits() backend.Traits { return backend.Traits{Memory: d.memory} }
func (d *closing) Close() error           { d.closed = true; return nil }

// TestUnasked: a GPU with memory of its own is taken unasked, and the plan chooses what it computes. Any other is not,
// and where there is no sign of one nothing is opened.
func TestUnasked(t *testing.T) {
	render, nvidia := fstest.MapFS{"dev/dri/renderD128": {}}, fstest.MapFS{"dev/nvidia0": {}, "dev/nvidiactl": {}}
	for _, c := range []struct {
		root   fstest.MapFS
		memory backend.Reach
		err    error
		asked  layers
		taken  bool
		layers layers
		said   string
	}{
		{fstest.MapFS{"dev/nvidiactl": {}}, backend.OwnMemory, nil, allLayers, false, allLayers, ""},
		{render, backend.OwnMemory, nil, allLayers, true, autoLayers, "sluice: computing on Card (--device cpu: on the processor)\n"},
		{nvidia, backend.OwnMemory, nil, 3, true, 3, "sluice: computing on Card (--device cpu: on the processor)\n"},
		{render, backend.HostMemory, nil, allLayers, false, allLayers,
			"sluice: computing on the processor: Card shares its memory (--device vulkan: on the GPU)\n"},
		{nvidia, backend.OwnMemory, errors.New("no driver"), allLayers, false, allLayers,
			"sluice: computing on the processor: no driver\n"},
	} {
		e, d := envtest.NewEnv(""), &closing{memory: c.memory}
		e.Root = c.root
		f, opened := Flags{GPULayers: c.asked}, false
		got := f.unasked(e, func() (backend.Device, error) {
			if opened = true; c.err != nil {
				return nil, c.err
			}
			return d, nil
		})
		require.Equal(t, c.taken, got != nil)
		require.Equal(t, opened && c.err == nil && !c.taken, d.closed)
		require.Equal(t, c.said != "", opened)
		require.Equal(t, c.said, fmt.Sprint(e.Stderr))
		require.Equal(t, c.layers, f.GPULayers)
	}
}
