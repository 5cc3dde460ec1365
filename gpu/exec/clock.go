package exec

import (
	"math"
	"sync"
	"time"
)

// clock tells a device's timestamps as times of the host. Of one timestamp it knows between which two times it was
// taken: since the device's crystal and the host's run apart, these move apart with time, and whatever is learnt later
// brings them together again. So it is as exact after weeks as after a second.
type clock struct {
	tick float64 // nanoseconds
	bits uint32  // of a timestamp that change; 0: there are none

	mu       sync.Mutex
	at       uint64 // a timestamp
	from, to time.Time
	looked   time.Time // when the device was asked last
}

const (
	// drift is by how much a device's clock and the host's may go apart, in time's own unit: crystals are within 50 parts
	// of a million, and clocks that are set by others are turned by as much.
	drift = 200e-6
	// late is how long after a device's end the host sees it, at best.
	late = 10 * time.Microsecond
	// askEvery is how often a device that can is asked for its time: it takes some microseconds.
	askEvery = 20 * time.Millisecond
)

// since is how long after one timestamp another was taken, which may be before it: half of what their bits count.
func (c *clock) since(at, tick uint64) time.Duration {
	shift := 64 - c.bits
	return time.Duration(math.Round(float64(int64((tick-at)<<shift)>>shift) * c.tick))
}

// between is since in ticks, of a timestamp that was taken later.
func (c *clock) between(first, last uint64) uint64 {
	shift := 64 - c.bits
	return (last - first) << shift >> shift
}

// far is whether so much time has passed that timestamps may have begun anew.
func (c *clock) far(d time.Duration) bool {
	return math.Abs(float64(d)) > math.Ldexp(c.tick, int(c.bits)-2)
}

// learn takes in two times of the host between which a timestamp was taken.
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

// time is when a timestamp was taken. What is known only by what the host saw is nearer to its end: the device began
// long after it was told to where it had other things to do, but its end is seen at once.
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
