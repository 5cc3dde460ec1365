package exec

import (
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// accounts hold when the device computed what.
type accounts struct {
	stamped        *reader
	ticks, divided []uint64             // that the watcher read, and those that it derived for borders between segments
	told           time.Time            // end of the last segment that was reported
	shares         map[recorded]*shares // of shapes of several segments; the keys have no detail
}

// timed is a recording that was submitted for a step, with a timestamp before its first segment and one behind the
// last, or behind each.
type timed struct {
	r      driver.Recording
	from   int     // first segment
	to     int     // last segment
	shares *shares // nil: the recording has one segment
	group  int     // group that moves and that it computes with; absent: none
	behind int     // group whose copy it waits for; absent: none
	asked  time.Time
}

// times says whether steps are timed: there is an observer, and the queue has timestamps.
func (m *model) times() bool { return m.config.Ran != nil && m.device.computing.bits > 0 }

// stamps is how many timestamps a recording has.
func (m *model) stamps(key *recorded) int {
	if key.tells || !m.times() {
		return 0 // the copy of a choice has none: a step may submit it twice
	}
	if key.detail {
		return key.To - key.From + 2
	}
	return 2
}

// detail decides whether the segments of a recording are timed one by one: if the step asks for it, in steps of many
// rows, where a timestamp costs little, and in one of detailEvery others.
func (m *model) detail(x *entry, key *recorded) {
	if key.tells || key.From == key.To || !m.times() {
		return
	}
	s := m.accounts.shares[*key]
	if s == nil {
		s = &shares{}
		m.accounts.shares[*key] = s
	}
	key.detail = s.due() || x.clock.detail || key.Rows >= fewRows
}

// submitted notes the recordings whose timestamps are read at the end of the step.
func (m *model) submitted(x *entry, all []driver.Recording, keys []recorded, asked time.Time) {
	if !m.times() {
		return
	}
	for i, r := range all {
		key := keys[i]
		if key.tells {
			continue
		}
		key.detail = false
		x.clock.timed = append(x.clock.timed, timed{r, key.From, key.To, m.accounts.shares[key], x.clock.moving,
			x.clock.behind, asked})
	}
}

// ask calibrates a clock by the device's time, if the device can tell it, and if that is due.
func (c *card) ask(k *clock, now time.Time) {
	if !c.calibrates || !k.due(now) {
		return
	}
	tick, from, to, ok := c.d.Calibrate()
	if !ok {
		c.calibrates = false
		return
	}
	k.learn(tick, from, to)
}

// see corrects a clock by work of the device. It took the timestamp first after it was asked, and last before the host
// saw its end now.
func (c *card) see(k *clock, first, last uint64, asked, seen time.Time) {
	if c.calibrates {
		c.ask(k, seen)
	} else {
		k.learn(last, asked.Add(k.since(first, last)), seen)
	}
}

// tell reports all that a step computed, whose end the host sees now. Recordings whose timestamps cannot be read are
// left out.
func (m *model) tell(x *entry, seen time.Time) {
	c, a := m.device.card, &m.accounts
	a.ticks = a.ticks[:0]
	read := x.clock.timed[:0]
	for _, t := range x.clock.timed {
		at := len(a.ticks)
		var err error
		if a.ticks, err = a.stamped.read(t.r, a.ticks); err == nil {
			c.see(c.computing, a.ticks[at], a.ticks[len(a.ticks)-1], t.asked, seen)
			read = append(read, t)
		}
	}
	ticks := a.ticks
	for i := range read {
		n := read[i].r.Marks()
		m.tellOf(x, &read[i], a.whole(c.computing, &read[i], ticks[:n]), seen)
		ticks = ticks[n:]
	}
	x.clock.timed = read[:0]
}

// whole returns a timestamp for each border of a recording's segments: those that it took, or, of two, their time
// divided among the segments.
func (a *accounts) whole(k *clock, t *timed, ticks []uint64) []uint64 {
	switch {
	case t.shares == nil:
		return ticks
	case len(ticks) > 2:
		t.shares.learn(k, ticks)
		return ticks
	default:
		a.divided = t.shares.divide(a.divided[:0], k, ticks[0], ticks[1], t.to-t.from+1)
		return a.divided
	}
}

// tellOf reports the times of a recording's segments.
func (m *model) tellOf(x *entry, t *timed, ticks []uint64, seen time.Time) {
	k, a := m.device.computing, &m.accounts
	at := func(tick uint64) time.Time { return later(a.told, earlier(k.time(tick), seen)) }
	a.told = later(at(ticks[0]), t.asked)
	for i, tick := range ticks[1:] {
		r := backend.Ran{Step: x.step, Segment: t.from + i, Group: t.group, Asked: t.asked, Began: a.told, Ended: at(tick)}
		if i == 0 && t.behind != absent {
			r.Landed = r.Began
			if landed := m.weights.groups[t.behind].landed.Load(); landed != 0 {
				r.Landed = earlier(r.Landed, time.Unix(0, landed))
			}
		}
		a.told = r.Ended
		m.config.Ran(r)
	}
}
