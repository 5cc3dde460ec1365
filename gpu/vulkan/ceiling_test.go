//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
)

// TestCeilings: a device reads and multiplies at some rate, by any of its means; one without timestamps says nothing.
func TestCeilings(t *testing.T) {
	g := open(t)
	d := g.device()
	for _, plain := range []bool{g.k.Plain, true} {
		g.k.Plain = plain
		for _, halves := range []bool{false, true} {
			read, multiply, err := d.Traits().Meter.Ceilings(halves)
			require.NoError(t, err)
			require.Len(t, read, 5)
			require.Len(t, multiply, 5)
			for i := range read {
				require.Greater(t, read[i], 1e7)
				require.Greater(t, multiply[i], 1e7)
			}
			t.Logf("plain %v, halves %v: %.1f GB/s, %.1f GOP/s", plain, halves, read[0]/1e9, multiply[0]/1e9)
		}
	}
	read, multiply, err := open(t, "timestamps").device().Traits().Meter.Ceilings(false)
	require.NoError(t, err)
	require.Empty(t, read)
	require.Empty(t, multiply)
}

// TestPeak: what multiplies is what the kernels multiply with, and does more in a round the better that is.
func TestPeak(t *testing.T) {
	want := func(k *Kernels, halves bool, module shaders.Module, ops float64) {
		m, n := k.peak(halves)
		require.Equal(t, module, m)
		require.InDelta(t, ops*peakGroups, n, 0.5)
	}
	want(&Kernels{CoopMat: true}, false, shaders.PeakMatrix, 4*8*16384)
	want(&Kernels{CoopMat: true, squares: true}, true, shaders.PeakHalfMatrix, 4*8*8192)
	want(&Kernels{CoopMat: true}, true, shaders.Peak, 128*8*2)
	want(&Kernels{}, false, shaders.PeakDot4, 128*8*8)
	want(&Kernels{}, true, shaders.Peak, 128*8*2)
	want(&Kernels{Plain: true}, false, shaders.Peak, 128*8*2)
}
