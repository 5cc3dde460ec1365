package exec

import (
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// copies are the recordings that copy groups to slots, and the account of their times.
type copies struct {
	made      map[copyOf]*copying
	submitted chan move // to follow, which times them; nil: none is timed
	stamped   *reader
}

// copyOf is a group that is copied to a slot, with timestamps or without.
type copyOf struct {
	group, slot int
	timed       bool
}

// copying is a recording of such a copy.
type copying struct {
	r    driver.Recording
	busy atomic.Bool // its timestamps have yet to be read
}

// copier returns the recording of a group's copy to a slot. One with timestamps is not submitted again before they were
// read: until then one without serves.
func (m *weights) copier(of copyOf) (*copying, error) {
	c := m.copies.made[of]
	if c != nil && of.timed && !c.busy.CompareAndSwap(false, true) {
		of.timed = false
		c = m.copies.made[of]
	}
	if c != nil {
		return c, nil
	}
	x, r, q := &m.groups[of.group], &m.slots[of.slot], m.card.queue
	c = &copying{}
	c.busy.Store(of.timed)
	stamps := 0
	if of.timed {
		stamps = 2
	}
	var err error
	c.r, err = q.record(driver.Copies, stamps, func(rec driver.Recording) error {
		if of.timed {
			rec.Stamp()
			defer rec.Stamp()
		}
		rec.Copy(r.memory, 0, x.kept, x.from, x.bytes)
		return nil
	})
	if err == nil {
		m.copies.made[of] = c
	}
	return c, err
}

// fetch submits the copy of a kept group to a slot.
func (m *weights) fetch(g, slot int) error {
	x, r, q := &m.groups[g], &m.slots[slot], m.card.queue
	c, err := m.copier(copyOf{g, slot, m.copies.submitted != nil && m.card.copying.bits > 0})
	if err != nil {
		return err
	}
	x.landed.Store(0)
	asked := time.Now()
	x.copied, err = q.copy(c.r, max(r.used, x.written.Load()), r.copied)
	r.copied = x.copied
	if err == nil && m.copies.submitted != nil {
		select {
		case m.copies.submitted <- move{g, x.copied, asked, c}:
		default: // the copy goes on; only its time is lost
		}
	}
	return err
}

// move is a copy that follow waits for, to report its time.
type move struct {
	group int
	value uint64
	asked time.Time
	by    *copying
}

// follow reports copies as they end.
func (m *weights) follow() {
	var last time.Time
	for c := range m.copies.submitted {
		if m.card.queue.reach(m.card.queue.copies, c.value, 0) != nil {
			continue
		}
		began, ended := m.copied(&c, time.Now())
		began = later(later(c.asked, last), began)
		ended = later(ended, began)
		m.groups[c.group].landed.Store(ended.UnixNano())
		m.config.Ran(backend.Ran{Group: c.group, Copied: true, Asked: c.asked, Began: began, Ended: ended})
		last = ended
	}
}

// copied is when a copy began and ended. The host has seen its end now.
func (m *weights) copied(c *move, seen time.Time) (began, ended time.Time) {
	if c.by.r.Marks() == 0 {
		return began, seen
	}
	ticks, err := m.copies.stamped.read(c.by.r, make([]uint64, 0, 2))
	if err != nil {
		return began, seen
	}
	c.by.busy.Store(false)
	k := m.card.copying
	m.card.see(k, ticks[0], ticks[1], c.asked, seen)
	return k.time(ticks[0]), earlier(k.time(ticks[1]), seen)
}
