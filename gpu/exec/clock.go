package exec

import (
	"math"
	"sync"
	"time"
)

// clock converts a device's timestamps to times of the host. It knows of one timestamp that it was taken between two
// times, from and to. Device and host have crystals of different speed, so this range widens with time, and each new
// measurement narrows it again. So the clock is as exact after weeks as after a second.
type clock struct {
	tick float64 // nanoseconds
	bits uint32  // valid bits of a timestamp; 0: there are none

	mu       sync.Mutex
	at       uint64 // a timestamp that was taken between from and to
	from, to time.Time
	looked   time.Time // when the device was asked last
}

const (
	// drift is by how much a device's clock and the host's may move apart, as a share of the time that passes: crystals
	// are exact to 50 parts of a million, and clocks that are set over the network are turned by as much.
	drift = 200e-6
	// late is how long after a device's end the host sees it, at best.
	late = 10 * time.Microsecond
	// askEvery is how often a device that can is asked for its time: it takes some microseconds.
	askEvery = 20 * time.Millisecond
)

// since is how long after one timestamp another was taken; below 0: before it. Their counter overflows, so it is exact
// up to half of its range.
func (c *clock) since(at, tick uint64) time.Duration {
	shift := 64 - c.bits
	return time.Duration(math.Round(float64(int64((tick-at)<<shift)>>shift) * c.tick))
}

// between is the ticks from one timestamp to a later one.
func (c *clock) between(first, last uint64) uint64 {
	shift := 64 - c.bits
	return (last - first) << shift >> shift
}

// far says whether so much time has passed that the counter of timestamps may have overflowed.
func (c *clock) far(d time.Duration) bool {
	return math.Abs(float64(d)) > math.Ldexp(c.tick, int(c.bits)-2)
}

// learn narrows the clock by a timestamp that was taken between two times of the host.
func (c *clock) learn(tick uint64, from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.to.IsZero() && !c.far(to.Sub(c.to)) {
		passed := c.since(c.at, tick)
		apart := time.Duration(math.Abs(float64(passed)) * drift)
		least, most := later(from, c.from.Add(passed-apart)), earlier(to, c.to.Add(passed+apart))
		if !least.After(most) { // else a clock was stopped meanwhile, as when the machine slept
			from, to = least, most
		}
	}
	c.at, c.from, c.to = tick, from, to
}

// time is when a timestamp was taken. Where the host's view is the only knowledge, this is nearer to the end of the
// range: a busy device may begin long after it was told to, but the host sees its end at once.
func (c *clock) time(tick uint64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.to.Add(c.since(c.at, tick) - min(late, c.to.Sub(c.from)/2))
}

// due says whether a device should be asked for its time.
func (c *clock) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) < askEvery {
		return false
	}
	c.looked = now
	return true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
