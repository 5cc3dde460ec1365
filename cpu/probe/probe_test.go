package probe

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/kernels"
)

// TestCeilings: there are figures for whatever this machine runs, and they are of this world, be it ever so busy.
func TestCeilings(t *testing.T) {
	bytes, err := Read(1)
	require.NoError(t, err)
	within := func(rates []float64, least, most float64, of string) {
		require.Len(t, rates, passes, of)
		require.Greater(t, slices.Min(rates), least, of)
		require.Less(t, slices.Max(rates), most, of)
	}
	within(bytes, 1e5, 1e12, "reading")
	for _, s := range kernels.Sets() {
		within(Attend(s, 1), 1e4, 1e13, s.Name)
		within(Gate(s, 1), 1e2, 1e12, s.Name)
		if s.Name != "generic" {
			within(Multiply(s.Name, 1), 1e6, 1e14, s.Name)
		}
	}
	require.Empty(t, Multiply("generic", 1))
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

// TestAreaLeavesMemory: a limit of memory must not end the process because a ceiling is measured.
func TestAreaLeavesMemory(t *testing.T) {
	require.EqualValues(t, leastArea/2, area(leastArea))
	require.EqualValues(t, thinArea, area(0))
	require.GreaterOrEqual(t, area(1<<40), int64(leastArea))
}
