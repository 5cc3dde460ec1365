package trace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInstant: differences are those of the monotonic clock, in virtual time too, and with times of time.Now.
func TestInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, at := time.Now(), Instant()
		time.Sleep(3 * time.Second)
		require.Equal(t, 3*time.Second, Instant().Sub(at))
		require.Equal(t, 3*time.Second, Instant().Sub(before))
		require.True(t, at.Before(time.Now()))
	})
	require.WithinDuration(t, time.Now(), Instant(), time.Minute)
}
