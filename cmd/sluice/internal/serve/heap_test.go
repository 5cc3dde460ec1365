package serve

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLimitHeap: the heap may have nine tenths of what is left, never so little that the collector finds nothing, and
// what the environment says holds.
func TestLimitHeap(t *testing.T) {
	own := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(own)
	for _, c := range []struct{ collector, left, want int64 }{
		{math.MaxInt64, 10 << 30, 9 << 30}, {math.MaxInt64, 100 << 20, leastHeap}, {math.MaxInt64, -1, leastHeap},
		{math.MaxInt64, 1000 << 20, 900 << 20}, {1 << 30, 10 << 30, 1 << 30},
	} {
		debug.SetMemoryLimit(c.collector)
		l := &loader{collector: c.collector}
		l.limitHeap(c.left)
		require.Equal(t, c.want, debug.SetMemoryLimit(-1), "%v", c)
	}
}
