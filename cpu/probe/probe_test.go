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
	require.Greater(t, bytes, 1e8)
	require.Less(t, bytes, 1e12)
	for _, s := range kernels.Sets() {
		if ops := Multiply(s.Name, 1); s.Name != "generic" {
			require.Greater(t, ops, 1e9, s.Name)
			require.Less(t, ops, 1e14, s.Name)
		}
	}
	require.Zero(t, Multiply("generic", 1))
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
