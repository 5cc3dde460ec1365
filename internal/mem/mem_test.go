package mem

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestAreasAreZeroAlignedAndWritable(t *testing.T) {
	for _, n := range []int64{1, Align, 3<<20 + 5} {
		area, err := Alloc(n)
		require.NoError(t, err)
		require.Len(t, area, int(n))
		require.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(area)))%64)
		for i := 0; i < len(area); i += 1000 {
			require.Zero(t, area[i])
			area[i] = 1
		}
		area[n-1] = 1
		require.NoError(t, Free(area))
	}
}

// Populate changes no byte, whatever is used beside it, and stops.
func TestPopulate(t *testing.T) {
	area, err := Alloc(3*populateBytes + 5)
	require.NoError(t, err)
	area[populateBytes+7] = 9
	var stop atomic.Bool
	Populate(area, &stop)
	require.Equal(t, byte(9), area[populateBytes+7])
	require.Zero(t, area[len(area)-1])
	stop.Store(true)
	Populate(area, &stop)
	require.NoError(t, Free(area))
}

func TestEmptyAndImpossibleSizes(t *testing.T) {
	area, err := Alloc(0)
	require.NoError(t, err)
	require.Empty(t, area)
	require.NoError(t, Free(area))

	_, err = Alloc(-1)
	require.ErrorContains(t, err, "-1 bytes")
	_, err = Alloc(1 << 62)
	require.ErrorContains(t, err, "map")
}
