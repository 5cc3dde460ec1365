package exec

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/ir"
)

// A step is submitted in few submissions, each of whole segments. They must be short: on a desktop the card also draws,
// and the operating system's driver resets a card that does not answer for some seconds (on Windows two). That a single
// segment is short enough is up to the scheduler, which bounds the rows of steps.

// outgoing is what is about to be submitted.
type outgoing struct {
	parting *entry             // the step of which parts are submitted
	batch   []driver.Recording // scratch list of submit
}

// longestSubmission bounds the duration of a submission.
const longestSubmission = 500 * time.Millisecond

const (
	fewRows    = 16 // steps of fewer rows take about as long: they read all weights
	slowerSeen = 4  // by which factor products in attention are slower than those in integers
)

// speed is the rate that was seen on a device, in products per second that are added up: in steps of few rows, which
// are bound by the reading of weights, and in steps of many.
type speed struct{ few, many atomic.Uint64 } // float64's bits; 0: not seen yet

func (s *speed) of(rows int) *atomic.Uint64 {
	if rows < fewRows {
		return &s.few
	}
	return &s.many
}

// work is the cost of a segment in products: for each row, and for each row and position that it attends to.
type work struct{ row, seen float64 }

// worksOf is the cost of each segment.
func worksOf(p *ir.Program) []work {
	all := make([]work, len(p.Segments))
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			c := p.CostOf(&p.Segments[s].Nodes[i])
			all[s].row += c.Products
			all[s].seen += slowerSeen * c.Seen
		}
	}
	return all
}

// products is the cost of a segment in a step, in products.
func (m *model) products(x *entry, segment int) float64 {
	rows, w := x.step.Rows(), &m.layout.works[segment]
	if m.layout.program.Segments[segment].Kind.Ends() {
		rows = len(x.step.Wanted)
	}
	return w.row*float64(max(rows, fewRows)) + w.seen*x.clock.sees
}

// countSeen adds up the positions that each row attends to.
func (x *entry) countSeen() {
	x.clock.sees = 0
	for i := range x.step.Spans {
		span := &x.step.Spans[i]
		x.clock.sees += float64(span.Rows) * (float64(span.Pos) + float64(span.Rows+1)/2)
	}
}

// submissions is into how many submissions segments are divided, and their cost in products. The number is a power of
// two, or the number of segments, so that there are few different recordings. Until the device's speed is known, each
// segment is a submission.
func (m *model) submissions(x *entry, from, to int) (n int, all float64) {
	for s := from; s <= to; s++ {
		all += m.products(x, s)
	}
	most := to - from + 1
	if m.device.longest == 0 {
		return 1, all
	}
	rate := math.Float64frombits(m.device.speed.of(x.step.Rows()).Load())
	if rate == 0 {
		return most, all
	}
	took := time.Duration(all / rate * float64(time.Second))
	for n = 1; n < most && took/time.Duration(n) > m.device.longest; {
		n *= 2
	}
	n = min(n, most)
	x.clock.longest = took / time.Duration(n)
	return n, all
}

// submit submits recordings of a step, to begin when the timeline of copies has come to a value.
func (m *model) submit(x *entry, copied uint64, keys ...recorded) (value uint64, err error) {
	all := m.batch[:0]
	for i := range keys {
		m.detail(x, &keys[i])
		r, err := m.recording(x, keys[i])
		if err != nil {
			return 0, err
		}
		all = append(all, r)
	}
	m.batch = all
	if m.mates.team != nil {
		for i := range keys {
			m.mates.held = append(m.mates.held, held{x, all[i], keys[i]})
		}
		return 0, nil
	}
	return m.give(x, copied, all, keys)
}

// give submits recordings.
func (m *model) give(x *entry, copied uint64, all []driver.Recording, keys []recorded) (value uint64, err error) {
	asked := time.Now()
	if x.clock.begins.IsZero() {
		x.clock.begins = asked
	}
	if value, err = m.device.queue.submit(copied, all...); err == nil {
		m.submitted(x, all, keys, asked)
	}
	x.value = max(x.value, value)
	return value, err
}

// flush submits the segments that were enqueued.
func (m *model) flush(x *entry) error {
	if x.from < 0 {
		return nil
	}
	key, to, count := recorded{Shape: x.shape}, x.to, x.to-x.from+1
	n, all := m.submissions(x, x.from, to)
	x.clock.work += all
	key.From, x.from = x.from, -1
	done, given := 0.0, 0
	for s := key.From; s <= to; s++ {
		done += m.products(x, s)
		if s < to && n < count && done < all*float64(given+1)/float64(n) {
			continue
		}
		key.To = s
		if _, err := m.submit(x, 0, key); err != nil {
			return err
		}
		key.From, given = s+1, given+1
	}
	return nil
}

// learnSpeed notes the rate of a step that has ended now; the step before it ended at last. A step all of whose
// segments came in parts does not count: it waited for weights.
func (m *model) learnSpeed(x *entry, last, now time.Time) {
	if took := now.Sub(later(x.clock.begins, last)); x.clock.work > 0 && took > 0 && m.device.longest > 0 {
		m.device.speed.of(x.step.Rows()).Store(math.Float64bits(x.clock.work / took.Seconds()))
	}
}

// longestOf is the longest that a submission to a device should take; 0: there is no bound.
func longestOf(f *driver.Facts) time.Duration {
	if f.Software {
		return 0 // no screen depends on it, and nothing resets it
	}
	return longestSubmission
}
