package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuckets: distances fall into T5's buckets, of one way and of both. Whole powers begin a bucket.
func TestBuckets(t *testing.T) {
	both := AttendArgs{Both: true, Buckets: 32, Farthest: 128}
	for after, want := range map[int]int{0: 0, 1: 17, 7: 23, 8: 24, 11: 24, 12: 25, 15: 25, 16: 26, 31: 27, 32: 28, 63: 29,
		64: 30, 90: 30, 91: 31, 127: 31, 128: 31, 5000: 31, -1: 1, -7: 7, -8: 8, -16: 10, -64: 14, -128: 15, -1 << 40: 15} {
		require.Equal(t, want, both.Bucket(after), after)
	}
	before := AttendArgs{Buckets: 32, Farthest: 128}
	for after, want := range map[int]int{0: 0, 9: 0, -1: 1, -15: 15, -16: 16, -18: 16, -19: 17, -64: 26, -127: 31,
		-4000: 31} {
		require.Equal(t, want, before.Bucket(after), after)
	}
}

// TestBucketsFit: buckets have distances and biases, or there are none of them.
func TestBucketsFit(t *testing.T) {
	for _, a := range []AttendArgs{{Buckets: 2, Farthest: 9}, {Buckets: 6, Farthest: 9}, {Buckets: 8, Farthest: 8},
		{Buckets: 8, Farthest: 1 << 13}, {Farthest: 9}, {Buckets: -4, Farthest: 9}} {
		a.Heads, a.KVHeads, a.KDim, a.VDim = 1, 1, 4, 4
		b := NewBuilder("test", nil)
		x := b.Input("in", 4, false)
		b.Block()
		b.Output("out", b.Attend(x, x, x, a))
		nodes := b.segment().Nodes
		nodes[len(nodes)-1].B = b.intern("biases", max(a.Buckets, 1), 1, Vector)
		_, err := b.Program(0)
		require.ErrorContains(t, err, "want 4 or a multiple of it, more distances, at most 4096, and biases")
	}
}
