package mem

import (
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
