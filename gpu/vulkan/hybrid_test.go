//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend/hybrid"
	"github.com/sluice-ai/sluice/internal/backendtest"
)

// TestHybrid: programs of which some segments are computed by the processor.
func TestHybrid(t *testing.T) {
	if testing.Short() {
		t.Skip("a CPU takes a while to compile kernels")
	}
	host, err := cpu.New(2, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	d := &hybrid.Device{Device: open(t).device(), Host: host}
	backendtest.Divided(t, d, ref.New(), someTypes)
}
