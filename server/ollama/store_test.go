package ollama

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJobsAreShared: no client holds all places for changes of the store.
func TestJobsAreShared(t *testing.T) {
	c := &changes{running: map[string]int{}}
	for range jobsOfOne {
		require.Nil(t, c.enter("a"))
	}
	require.Contains(t, c.enter("a").Text, "6 changes of the store that you asked for are under way already")
	for range jobs - jobsOfOne {
		require.Nil(t, c.enter("b"))
	}
	require.Contains(t, c.enter("c").Text, "8 changes of the store are under way already")
	c.leave("a")
	require.Nil(t, c.enter("c"))
	for range jobsOfOne - 1 {
		c.leave("a")
	}
	require.NotContains(t, c.running, "a")
}
