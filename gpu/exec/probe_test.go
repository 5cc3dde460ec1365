package exec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// TestSettle: what a card does before it has its full clocks does not count, nor what others do to single passes, and
// no measurement lasts for ever.
func TestSettle(t *testing.T) {
	spent := time.Duration(0)
	run := func(warm time.Duration, took func(i int) time.Duration) time.Duration {
		i := 0
		spent = 0
		d, err := settle(warm, func() (time.Duration, error) {
			x := took(i)
			spent += x
			i++
			return x, nil
		})
		require.NoError(t, err)
		return d
	}
	const slow, fast = 30 * time.Millisecond, 20 * time.Millisecond
	wakes := func(int) time.Duration {
		if spent < 900*time.Millisecond {
			return slow
		}
		return fast
	}
	require.Equal(t, fast, run(probeWarm, wakes))
	require.Equal(t, slow, run(0, wakes), "a device without a clock is not waited for")
	require.Less(t, spent, time.Second/2)
	require.Equal(t, fast, run(0, func(i int) time.Duration {
		if i%5 == 4 {
			return time.Second
		}
		return fast
	}))
	require.Positive(t, run(0, func(i int) time.Duration { return time.Second / time.Duration(1+i/5) }), "ever faster")
	require.Less(t, spent, probeMost+6*time.Second)
	require.Zero(t, run(0, func(int) time.Duration { return 0 }))
	_, err := settle(0, func() (time.Duration, error) { return 0, driver.ErrLost })
	require.ErrorIs(t, err, driver.ErrLost)
}
