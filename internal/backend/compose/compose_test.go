package compose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// processor is the CPU with so many threads.
func processor(t *testing.T, threads int, force string) backend.Device {
	d, err := cpu.New(threads, force)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestConformance: two devices of the same kernels compute what one does, by the laws of bits.
func TestConformance(t *testing.T) {
	d := compose.New(processor(t, 1, ""), processor(t, 2, ""))
	types := []quant.Type{quant.F32, quant.Q8_0, quant.Q4_K}
	backendtest.Conformance(t, backendtest.Split(d), ref.New(), types)
}
