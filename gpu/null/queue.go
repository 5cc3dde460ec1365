package null

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// queue runs submissions one after the other.
type queue struct {
	waiting []*submission
	given   uint64      // number of submissions so far
	past    known       // what has ended when the last submission that began has
	now     *submission // the submission that runs; nil: none does
}

// submission is recordings that wait for their turn.
type submission struct {
	queue  driver.Queue
	number uint64
	all    []*recording
	waits  []driver.Point
	signal driver.Point
	knows  known // what has ended when it begins
}

// known is, by queue, how many submissions are known to have ended. What they wrote is visible.
type known [2]uint64

func (k *known) join(other known) {
	for q := range k {
		k[q] = max(k[q], other[q])
	}
}

// timeline is a counter.
type timeline struct {
	d        *Device
	value    uint64
	promised uint64   // value at the end of all that was submitted
	signals  []signal // in the order of their values
}

// signal is a value that a timeline came to, and what has ended by then.
type signal struct {
	value uint64
	past  known
}

// Timeline implements driver.Device.
func (d *Device) Timeline() (driver.Timeline, error) { return &timeline{d: d}, nil }

// at is what is known when the timeline has come to a value.
func (l *timeline) at(value uint64) known {
	n := sort.Search(len(l.signals), func(i int) bool { return l.signals[i].value > value })
	if n == 0 {
		return known{}
	}
	return l.signals[n-1].past
}

// Wait implements driver.Timeline.
func (l *timeline) Wait(value uint64, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		l.d.mu.Lock()
		lost, changed, there := l.d.lost, l.d.changed, l.value >= value
		if there {
			l.d.hazards.host.join(l.at(value))
		}
		l.d.mu.Unlock()
		switch {
		case lost != nil:
			return lost
		case there:
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return driver.ErrTimeout
		}
	}
}

// Value implements driver.Timeline.
func (l *timeline) Value() (uint64, error) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.d.hazards.host.join(l.at(l.value))
	return l.value, l.d.lost
}

func (l *timeline) Close() {}

// Submit implements driver.Device.
func (d *Device) Submit(all []driver.Recording, waits []driver.Point, signal driver.Point) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return d.lost
	}
	s := &submission{waits: append([]driver.Point(nil), waits...), signal: signal}
	for _, r := range all {
		r := r.(*recording)
		if s.all = append(s.all, r); !r.ended || r.queue != s.all[0].queue {
			return errors.New("null: recordings that are submitted together are of one queue, and ended")
		}
		s.queue = r.queue
	}
	return d.give(s)
}

// give puts a submission behind those before it.
func (d *Device) give(s *submission) error {
	q, line := &d.queues[s.queue], s.signal.Timeline.(*timeline)
	if line.promised >= s.signal.Value {
		return fmt.Errorf("null: a timeline is to come to %d, and then to %d", line.promised, s.signal.Value)
	}
	line.promised = s.signal.Value
	q.given++
	s.number, s.knows = q.given, d.hazards.host
	q.waiting = append(q.waiting, s)
	d.change()
	return nil
}

// begin takes a queue's next submission, whose waits are reached.
func (q *queue) begin() *submission {
	s := q.waiting[0]
	q.waiting, q.now = q.waiting[1:], s
	for _, w := range s.waits {
		s.knows.join(w.Timeline.(*timeline).at(w.Value))
	}
	q.past.join(s.knows)
	q.past[s.queue] = s.number
	return s
}

// end raises what a submission signals, unless the device was lost.
func (d *Device) end(s *submission, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, line := &d.queues[s.queue], s.signal.Timeline.(*timeline)
	if q.now = nil; err != nil {
		d.lose(err)
	}
	if d.lost == nil {
		line.value = s.signal.Value
		past := line.at(s.signal.Value)
		past.join(q.past)
		line.signals = append(line.signals, signal{s.signal.Value, past})
	}
	d.change()
}

// serve runs a queue until the device is closed.
func (d *Device) serve(of driver.Queue) {
	rng := rand.New(rand.NewPCG(d.options.Order, uint64(of)))
	for {
		s := d.next(&d.queues[of])
		if s == nil {
			return
		}
		var err error
		for _, r := range s.all {
			if err == nil {
				err = d.play(s, r, rng)
			}
		}
		d.end(s, err)
	}
}

// next waits for a queue's next submission, and for the timelines that it waits for; nil: the device is closed, and no
// more can run.
func (d *Device) next(q *queue) *submission {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if len(q.waiting) > 0 && d.lost == nil && q.waiting[0].ready() {
			return q.begin()
		}
		if d.closed && (d.lost != nil || !d.moves()) {
			return nil
		}
		changed := d.changed
		d.mu.Unlock()
		<-changed
		d.mu.Lock()
	}
}

// ready says whether timelines have come to what a submission waits for.
func (s *submission) ready() bool {
	for _, w := range s.waits {
		if w.Timeline.(*timeline).value < w.Value {
			return false
		}
	}
	return true
}

// moves says whether anything that was submitted runs, or can.
func (d *Device) moves() bool {
	for i := range d.queues {
		if q := &d.queues[i]; q.now != nil || len(q.waiting) > 0 && q.waiting[0].ready() {
			return true
		}
	}
	return false
}

// play runs a recording. If a loop breaks, a missing order may be the cause: so the other commands run as well, and a
// hazard that they show is reported instead.
func (d *Device) play(s *submission, r *recording, rng *rand.Rand) (broken error) {
	commands := r.commands
	if d.options.Order != 0 {
		commands = shuffled(commands, rng)
	}
	for i := range commands {
		c := &commands[i]
		switch {
		case c.stamp > 0:
			d.mu.Lock()
			r.ticks[c.stamp-1] = d.ticks
			d.mu.Unlock()
		case c.barrier != none:
			d.mu.Lock()
			d.hazards.shut(s.queue, c.barrier)
			d.mu.Unlock()
		default:
			err, hazard := d.command(s, c)
			if hazard != nil {
				return hazard
			}
			broken = cmp.Or(broken, err)
		}
	}
	return broken
}

// command runs a copy, a fill or a kernel, and looks for hazards with others.
func (d *Device) command(s *submission, c *command) (broken, hazard error) {
	x := &access{memory: &d.memory, gone: d.gone, uses: c.uses}
	if broken = x.try(c.run); broken != nil {
		broken = fmt.Errorf("%s: %w", c.name, broken)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ticks++
	return broken, d.hazards.add(s, c, x.touched, d.past())
}

// past is what all submissions that run, or are still to run, know to have ended.
func (d *Device) past() known {
	k := d.hazards.host
	for i := range d.queues {
		q := &d.queues[i]
		all := q.waiting
		if q.now != nil {
			all = append(all[:len(all):len(all)], q.now)
		}
		for _, s := range all {
			for of := range k {
				k[of] = min(k[of], s.knows[of])
			}
		}
	}
	return k
}
