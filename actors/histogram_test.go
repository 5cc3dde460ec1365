package actors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHistogram: a duration is in the first bucket whose end it does not pass, and in those after it.
func TestHistogram(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{-1, 0, shortest, shortest + 1, 2 * shortest, time.Minute, time.Hour} {
		h.add(d)
	}
	got := h.load()
	require.EqualValues(t, 7, got.Count)
	require.Equal(t, shortest+shortest+1+2*shortest+time.Minute+time.Hour, got.Sum)
	require.Len(t, got.Up, doubles)
	require.Equal(t, Bucket{shortest, 3}, got.Up[0])
	require.Equal(t, Bucket{2 * shortest, 5}, got.Up[1])
	require.Equal(t, Bucket{65536 * time.Millisecond, 6}, got.Up[doubles-1])
	require.EqualValues(t, 5, got.Up[doubles-2].Count)
}

// TestLatencies: every answer has one first token and one time in the queue, and all tokens but the first have a gap.
func TestLatencies(t *testing.T) {
	e := startFixture(t, fixture, nil)
	for range 3 {
		collect(t, begin(t, e, plain([]int32{5, 6, 7}, 10)))
	}
	s := e.Snapshot()
	require.EqualValues(t, 3, s.FirstToken.Count)
	require.EqualValues(t, 27, s.BetweenTokens.Count)
	require.EqualValues(t, 3, s.Queue.Count)
	require.Less(t, s.Queue.Sum, s.FirstToken.Sum)
	require.Positive(t, s.Queue.Sum)
}
