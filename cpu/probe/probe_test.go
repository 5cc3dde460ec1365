package probe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/kernels"
)

// TestCeilings: there are figures for whatever this machine runs, and they are of this world.
func TestCeilings(t *testing.T) {
	bytes, err := Read(1)
	require.NoError(t, err)
	within := func(r Rate, least, most float64, of string) {
		require.Greater(t, r.Mean, least, of)
		require.GreaterOrEqual(t, r.Best, r.Mean*(1-1e-9), of)
		require.Less(t, r.Best, most, of)
	}
	within(bytes, 1e8, 1e12, "reading")
	for _, s := range kernels.Sets() {
		if s.Name != "generic" {
			within(Multiply(s.Name, 1), 1e9, 1e14, s.Name)
		}
	}
	require.Zero(t, Multiply("generic", 1))
}

// TestOverall: to do the same amount at 1 and at 3 per second takes 4/3 s.
func TestOverall(t *testing.T) {
	all := Overall([]Rate{{1, 2}, {3, 4}})
	require.InDelta(t, 1.5, all.Mean, 1e-12)
	require.Equal(t, 4.0, all.Best)
}

// TestReadAll: whichever instructions read, they stay within the area.
func TestReadAll(t *testing.T) {
	area := make([]byte, streams*piece)
	read(area)
	readWords(&area[0], piece, piece)
}

func BenchmarkRead(b *testing.B) {
	area := make([]byte, 64<<20)
	touch(area)
	b.SetBytes(int64(len(area)))
	for b.Loop() {
		read(area)
	}
}
