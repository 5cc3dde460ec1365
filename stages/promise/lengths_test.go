package promise

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each token belongs to one stretch.
func TestStretches(t *testing.T) {
	for token := 1; token < 1<<18; token++ {
		i := stretch(token)
		require.LessOrEqual(t, begins(i), token)
		require.True(t, i == stretches-1 || token < begins(i+1), "token %d", token)
	}
}

// Of answers that are expected so many end before each length as did before, of those that have come as far.
func TestEndsAreAsTheyWere(t *testing.T) {
	var l Lengths
	require.Equal(t, 70, l.ends(5, 70, 0.5), "nothing is known")
	for i := range 1000 {
		l.Observe(1+i*37%100, true) // from 1 to 100, all alike
	}
	for _, x := range []struct {
		had   int
		share float64
		want  int
	}{{0, 0.1, 10}, {0, 0.5, 50}, {0, 0.9, 90}, {50, 0.5, 25}, {80, 0.5, 10}} {
		require.InDelta(t, x.want, l.ends(x.had, 1000, x.share), 6, "%+v", x)
	}
	require.Equal(t, 20, l.ends(0, 20, 0.5), "it may not become longer")
	require.Equal(t, 1, l.ends(200, 20, 0), "one token comes at least")
}

// Where an answer ends because it may not become longer, others would not have ended, and those that still go on count
// as well.
func TestCutAnswersAreNoEnds(t *testing.T) {
	var l Lengths
	for i := range 400 {
		l.Observe(10, false)
		l.Observe(81+i*37%40, true)
	}
	require.InDelta(t, 93, l.ends(0, 1000, 0.3), 12)

	var going Lengths
	for range 20 {
		going.Observe(10, true)
	}
	before := going.ends(0, 1000, 0.9)
	for range 20 {
		going.came(10)
	}
	require.Greater(t, going.ends(0, 1000, 0.9), before)
}
