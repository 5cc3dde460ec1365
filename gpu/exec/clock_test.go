package exec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// crystal is a device's clock beside the host's: it begins anywhere, runs too fast or too slow, and begins anew when
// its bits are full.
type crystal struct {
	begun uint64
	tick  float64 // nanoseconds, as it says
	rate  float64 // of its ticks to those
	bits  uint32
}

var epoch = time.Unix(1_700_000_000, 0)

func (c *crystal) at(when time.Duration) uint64 {
	ticks := c.begun + uint64(float64(when)/c.tick*c.rate)
	return ticks << (64 - c.bits) >> (64 - c.bits)
}

// TestClock: over weeks, with breaks of seconds or days in which bits run over, timestamps of steps become times of the
// host that are off by no more than what was told of them allows.
func TestClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := crystal{
			begun: rapid.Uint64Max(1<<63).Draw(t, "begun"), tick: rapid.SampledFrom([]float64{1, 10, 52.08333}).Draw(t, "tick"),
			rate: 1 + float64(rapid.IntRange(-90, 90).Draw(t, "ppm"))/1e6,
			bits: rapid.SampledFrom([]uint32{36, 40, 64}).Draw(t, "bits"),
		}
		calibrated := rapid.Bool().Draw(t, "calibrated")
		k := &clock{tick: c.tick, bits: c.bits}
		now := time.Duration(0)
		between := func(from, to time.Duration, name string) time.Duration {
			return time.Duration(rapid.Int64Range(int64(from), int64(to)).Draw(t, name))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour, 100 * time.Hour}).Draw(t, "break")
			asked := now
			began := asked + between(5*time.Microsecond, time.Millisecond, "launch")
			ended := began + between(time.Microsecond, 200*time.Millisecond, "work")
			seen := ended + between(15*time.Microsecond, 60*time.Microsecond, "sight")
			now = seen
			off := time.Microsecond // of what was told
			if calibrated {
				k.learn(c.at(seen), epoch.Add(seen-time.Microsecond), epoch.Add(seen+time.Microsecond))
			} else {
				first, last := c.at(began), c.at(ended)
				k.learn(last, epoch.Add(asked+k.since(first, last)), epoch.Add(seen))
				off = seen - ended
			}
			off += time.Duration(drift*float64(seen-began)) + 2*time.Microsecond
			for _, when := range []time.Duration{began, (began + ended) / 2, ended} {
				got := k.time(c.at(when)).Sub(epoch)
				if got < when-off || got > when+off {
					t.Fatalf("%v is taken for %v: %v apart, want at most %v", when, got, got-when, off)
				}
			}
		}
	})
}

// TestClockWithoutCalibration: a thousand steps, whose ends are seen 15 to 60 µs late, tell the time to half of that.
func TestClockWithoutCalibration(t *testing.T) {
	c := crystal{begun: 12345, tick: 1, rate: 1 + 60e-6, bits: 64}
	k := &clock{tick: 1, bits: 64}
	now := time.Duration(0)
	for i := range 1000 {
		began := now + 8*time.Microsecond
		ended := began + 3*time.Millisecond
		seen := ended + time.Duration(15+i*37%46)*time.Microsecond
		first, last := c.at(began), c.at(ended)
		k.learn(last, epoch.Add(now+k.since(first, last)), epoch.Add(seen))
		now = seen
		if i > 100 {
			require.InDelta(t, float64(ended), float64(k.time(last).Sub(epoch)), 30e3)
		}
	}
}

// TestClockStopped: after the machine slept, in which one clock ran and the other did not, what is told now counts.
func TestClockStopped(t *testing.T) {
	k := &clock{tick: 1, bits: 64}
	k.learn(1000, epoch, epoch.Add(2))
	k.learn(uint64(10*time.Hour), epoch.Add(time.Second), epoch.Add(time.Second+2))
	require.Equal(t, epoch.Add(time.Second+1), k.time(uint64(10*time.Hour)))
	require.Equal(t, epoch.Add(time.Second-49), k.time(uint64(10*time.Hour)-50), "before it")
}

// TestClockIsAskedSeldom: a device is asked at most so often.
func TestClockIsAskedSeldom(t *testing.T) {
	k := &clock{}
	require.True(t, k.due(epoch))
	require.False(t, k.due(epoch.Add(askEvery-1)))
	require.True(t, k.due(epoch.Add(askEvery)))
	require.False(t, k.due(epoch.Add(askEvery)))
}
