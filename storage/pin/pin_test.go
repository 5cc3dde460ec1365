package pin

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func TestArena(t *testing.T) {
	a, err := New(5, 3*Align-1)
	require.NoError(t, err)
	require.Equal(t, 5, a.Slabs())
	if a.Unlocked != nil {
		t.Log(a.Unlocked) // depends on the limits of who runs the test
	}
	for i := range a.Slabs() {
		slab := a.Slab(i)
		require.Len(t, slab, 3*Align)
		require.Equal(t, len(slab), cap(slab), "a slab must not grow into the next")
		require.Zero(t, address(slab)%Align)
		for j := range slab {
			slab[j] = byte(i + 1)
		}
	}
	for i := range a.Slabs() {
		require.Equal(t, byte(i+1), a.Slab(i)[0])
		require.Equal(t, byte(i+1), a.Slab(i)[3*Align-1])
	}
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.Panics(t, func() { a.Slab(0) })
}

func TestArenaRefuses(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {1, math.MaxInt}, {math.MaxInt / Align, 2 * Align}} {
		_, err := New(c[0], c[1])
		require.ErrorContains(t, err, "arena of")
	}
}

// TestArenaBeyondTheLockLimit asks for more than most systems let a user lock: the arena works either way.
func TestArenaBeyondTheLockLimit(t *testing.T) {
	a, err := New(16, 4<<20)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	if a.Unlocked != nil {
		require.ErrorContains(t, a.Unlocked, "cannot lock 67108864 bytes in memory")
	}
	a.Slab(15)[4<<20-1] = 1
}
