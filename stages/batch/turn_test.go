package batch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func taken(t require.TestingT, turns *Turns) int {
	m, ok := turns.Next()
	require.True(t, ok)
	return m
}

func nobody(t require.TestingT, turns *Turns) {
	m, ok := turns.Next()
	require.False(t, ok, "model %d", m)
}

func TestTurns(t *testing.T) {
	turns := NewTurns(2)
	nobody(t, turns)
	turns.Wait(1)
	turns.Wait(0)
	require.Equal(t, 1, taken(t, turns), "who came first")
	turns.Took(1, 10*time.Millisecond)
	require.Equal(t, 0, taken(t, turns), "who has had less")
	turns.Took(0, 100*time.Millisecond)
	turns.Wait(0)
	nobody(t, turns) // model 1 has had less, and may have a step in a moment
	turns.Wait(1)
	require.Equal(t, 1, taken(t, turns))
	turns.Took(1, 10*time.Millisecond)
	turns.Idle(1)
	require.Equal(t, 0, taken(t, turns), "the other has nothing to do")
	nobody(t, turns)
}

// A model that comes back after a pause does not shut the others out for as long as it was away.
func TestTurnsNoSavings(t *testing.T) {
	turns := NewTurns(2)
	for range 50 {
		turns.Wait(0)
		require.Equal(t, 0, taken(t, turns))
		turns.Took(0, time.Second)
	}
	for i := range 6 {
		turns.Wait(0)
		turns.Wait(1)
		m := taken(t, turns)
		turns.Took(m, time.Second)
		require.Equal(t, i%2, m, "in turns")
	}
}

// Whatever steps cost, models that always have work get equal time, to within their longest step.
func TestTurnsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "models")
		turns := NewTurns(n)
		cost, longest := make([]time.Duration, n), time.Duration(0)
		for i := range cost {
			cost[i] = time.Duration(rapid.IntRange(1, 1000).Draw(t, "cost"))
			longest = max(longest, cost[i])
			turns.Wait(i)
		}
		had := make([]time.Duration, n)
		for range 500 {
			m := taken(t, turns)
			had[m] += cost[m]
			turns.Took(m, cost[m])
			turns.Wait(m)
			for i := range had {
				require.LessOrEqual(t, had[m]-had[i], longest)
			}
		}
	})
}
