//go:build cgo && linux

package vulkan

import (
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// timed is a recording that was submitted for a step, with a timestamp before its first segment and one behind the
// last, or behind each.
type timed struct {
	r      *vk.Recording
	from   int     // segment
	to     int     // likewise, the last
	shares *shares // nil: of one segment
	group  int     // that moves and is computed with; absent: none
	behind int     // group whose copy it waits for; absent: none
	asked  time.Time
}

// times prepares the clocks of a card.
func (c *card) times() {
	compute, copies := c.d.StampBits()
	c.computing = &clock{tick: c.d.Facts.Tick, bits: compute}
	c.copying = &clock{tick: c.d.Facts.Tick, bits: copies}
	c.calibrates = c.d.Facts.Has.Calibrates
}

// times says whether steps are timed: somebody hears of it, and the queue has timestamps.
func (m *model) times() bool { return m.config.Ran != nil && m.device.computing.bits > 0 }

// stamps is how many timestamps a recording of a shape has.
func (m *model) stamps(sh *shape) int {
	if sh.tells || !m.times() {
		return 0 // of a choice: it may be asked for twice in a step
	}
	if sh.detail {
		return sh.to - sh.from + 2
	}
	return 2
}

// detail decides whether the segments of a recording are timed one by one: where somebody asks for that, of many rows,
// whose time is long, and of others now and then.
func (m *model) detail(x *slot, sh *shape) {
	if sh.tells || sh.from == sh.to || !m.times() {
		return
	}
	s := m.shares[*sh]
	if s == nil {
		s = &shares{}
		m.shares[*sh] = s
	}
	sh.detail = s.due() || x.step.Detail || sh.rows >= fewRows
}

// border is stamp between two segments.
func (x *recorder) border() {
	if x.shape.detail {
		x.stamp()
	}
}

// stamp notes the time, if somebody wants to know.
func (x *recorder) stamp() {
	if x.timed {
		x.r.Stamp()
	}
}

// submitted notes what the end of a step has to read.
func (m *model) submitted(x *slot, all []*vk.Recording, shapes []shape, asked time.Time) {
	if !m.times() {
		return
	}
	for i, r := range all {
		sh := shapes[i]
		if sh.tells {
			continue
		}
		sh.detail = false
		x.timed = append(x.timed, timed{r, sh.from, sh.to, m.shares[sh], x.moving, x.behind, asked})
	}
}

// ask hears the device's time, if it can tell and that is due.
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

// see brings a clock up to date by what a device did: from one timestamp, which it took after it was asked, to another,
// which the host has seen now.
func (c *card) see(k *clock, first, last uint64, asked, seen time.Time) {
	if c.calibrates {
		c.ask(k, seen)
	} else {
		k.learn(last, asked.Add(k.since(first, last)), seen)
	}
}

// tell tells of all that a step computed, which the host sees to have ended now. What cannot be read is left out.
func (m *model) tell(x *slot, seen time.Time) {
	c := m.device.card
	m.ticks = m.ticks[:0]
	read := x.timed[:0]
	for _, t := range x.timed {
		at := len(m.ticks)
		var err error
		if m.ticks, err = m.stamped.read(t.r, m.ticks); err == nil {
			c.see(c.computing, m.ticks[at], m.ticks[len(m.ticks)-1], t.asked, seen)
			read = append(read, t)
		}
	}
	ticks := m.ticks
	for i := range read {
		n := read[i].r.Marks()
		m.tellOf(x, &read[i], m.whole(&read[i], ticks[:n]), seen)
		ticks = ticks[n:]
	}
	x.timed = read[:0]
}

// whole is a timestamp for each border of a recording's segments: its own, or as the time between its two is divided.
func (m *model) whole(t *timed, ticks []uint64) []uint64 {
	switch k := m.device.computing; {
	case t.shares == nil:
		return ticks
	case len(ticks) > 2:
		t.shares.learn(k, ticks)
		return ticks
	default:
		m.divided = t.shares.divide(m.divided[:0], k, ticks[0], ticks[1], t.to-t.from+1)
		return m.divided
	}
}

// tellOf tells of the segments of a recording.
func (m *model) tellOf(x *slot, t *timed, ticks []uint64, seen time.Time) {
	k := m.device.computing
	at := func(tick uint64) time.Time { return later(m.told, earlier(k.time(tick), seen)) }
	m.told = later(at(ticks[0]), t.asked)
	for i, tick := range ticks[1:] {
		r := backend.Ran{Step: x.step, Segment: t.from + i, Group: t.group, Asked: t.asked, Began: m.told, Ended: at(tick)}
		if i == 0 && t.behind != absent {
			r.Landed = r.Began
			if landed := m.groups[t.behind].landed.Load(); landed != 0 {
				r.Landed = earlier(r.Landed, time.Unix(0, landed))
			}
		}
		m.told = r.Ended
		m.config.Ran(r)
	}
}
