package speculate

import (
	"math"
	"time"
)

// Shape is what a model's steps are expected to cost before any is measured, in any unit: Fixed for a step, Row for
// each of its rows, and Experts times the share of the experts that its rows use: a row uses Used of Count in each
// layer.
type Shape struct {
	Fixed, Row, Experts float64
	Count, Used         int
}

// Cost is the expected cost of a step of so many rows.
func (s *Shape) Cost(rows int) float64 {
	return s.Fixed + s.Row*float64(rows) + s.Experts*s.distinct(rows)
}

// distinct is which part of the experts so many rows go to, if they go there by chance.
func (s *Shape) distinct(rows int) float64 {
	if s.Count == 0 {
		return 0
	}
	return 1 - math.Pow(1-float64(s.Used)/float64(s.Count), float64(rows))
}

// mostRows is how many rows a step has at most of which the time is kept.
const mostRows = 256

// Clock learns what steps of answers cost by their rows, with guesses and without.
type Clock struct {
	shape   Shape
	plain   [mostRows + 1]times // by rows of the step: without guesses
	guessed [mostRows + 1]times // by rows of the step, guesses included: with guesses
	rows    int                 // rows of the newest step, guesses apart
	mean    float64             // guesses of a step, of late
	most    int                 // most rows that a step with guesses has had
	base    float64             // seconds of a step of so many rows without guesses; 0: not known
	steps   int
}

const (
	validSteps = 256 // how many steps a measured time is valid for
	plainEvery = 24  // at least one of so many steps has no guesses, so that its time is known
	lateGuess  = 8   // steps that mean is taken over, roughly
)

// NewClock expects what the shape says until it has measured.
func NewClock(s Shape) *Clock {
	if s.Cost(1) <= 0 {
		s = Shape{Fixed: 1}
	}
	return &Clock{shape: s, rows: 1}
}

// Observe records the time of a step of decodes alone: its rows, and how many of these were guesses.
func (c *Clock) Observe(rows, guesses int, took time.Duration) {
	c.rows = max(rows-guesses, 1)
	c.steps++
	c.mean += (float64(guesses) - c.mean) / lateGuess
	if took > 0 && rows <= mostRows {
		t := &c.plain[rows]
		if guesses > 0 {
			t, c.most = &c.guessed[rows], max(c.most, rows)
		}
		if c.steps-t.at > validSteps {
			t.n = 0
		}
		t.at = c.steps
		t.add(took.Seconds(), guesses == 0)
	}
	c.base = c.floor()
}

// floor is the seconds of a step without guesses of as many rows as the newest; 0: not known. It is at most what any
// step with guesses takes: if it measured more, it was held up.
func (c *Clock) floor() float64 {
	if c.rows > mostRows || !c.plain[c.rows].known {
		return 0
	}
	least := c.plain[c.rows].value
	for i := c.rows + 1; i <= c.most; i++ {
		if t := &c.guessed[i]; c.valid(t) {
			least = min(least, t.value)
		}
	}
	return least
}

func (c *Clock) valid(t *times) bool { return t.known && c.steps-t.at <= validSteps }

// Others estimates how many guesses the other sequences of a step have, beside one that has own on average.
func (c *Clock) Others(own float64) int { return int(max(c.mean-own, 0) + 0.5) }

// Fresh says whether it was measured lately what a step costs that has so many guesses.
func (c *Clock) Fresh(guesses int) bool {
	all := c.rows + guesses
	return all <= mostRows && c.valid(&c.guessed[all])
}

// Rows is how many rows the newest step had, guesses apart.
func (c *Clock) Rows() int { return c.rows }

// Known says whether it is known, from one of the last few steps, what a step of the present number of rows takes
// without guesses.
func (c *Clock) Known() bool {
	if c.rows*(1+MostGuesses) > mostRows {
		return false // so many sequences fill a step: guesses would not pay
	}
	t := &c.plain[c.rows]
	return t.known && c.steps-t.at < plainEvery
}

// Cost is the cost of a step to a sequence that has so many guesses in it, as a multiple of a step without any. What
// all guesses of the step cost, those of the other sequences too, is divided among them.
func (c *Clock) Cost(guesses, others int) float64 {
	all := others + guesses
	return 1 + (c.times(all)-1)*float64(guesses)/float64(all)
}

// times is the time of a step with so many guesses, as a multiple of one without: between the nearest numbers of
// guesses that were measured (lately, if any was), else by the shape.
func (c *Clock) times(guesses int) float64 {
	if guesses == 0 {
		return 1
	}
	before := c.shape.Cost(c.rows)
	rises := func(n int) float64 { return c.shape.Cost(c.rows+n)/before - 1 }
	if c.base == 0 {
		return 1 + rises(guesses)
	}
	fewer, more := c.around(guesses, c.valid)
	if fewer == 0 && more == 0 {
		fewer, more = c.around(guesses, func(t *times) bool { return t.known })
	}
	measured := func(n int) float64 { return max(c.guessed[c.rows+n].value/c.base-1, 0) }
	scaled := func(n int) float64 {
		by := float64(guesses) / float64(n)
		if r := rises(n); r > 0 {
			by = rises(guesses) / r
		}
		return 1 + measured(n)*by
	}
	switch {
	case fewer == 0 && more == 0:
		return 1 + rises(guesses)
	case more == 0:
		return scaled(fewer)
	case fewer == 0 || fewer == more:
		return scaled(more)
	}
	high := measured(more)
	low := min(measured(fewer), high) // fewer guesses never cost more: such a step was held up
	return 1 + low + (high-low)*float64(guesses-fewer)/float64(more-fewer)
}

// around returns the nearest numbers of guesses whose times are good: the next at most, and the next at least as
// large as asked for; 0: none is.
func (c *Clock) around(guesses int, good func(*times) bool) (fewer, more int) {
	for fewer = min(guesses, c.most-c.rows); fewer > 0 && !good(&c.guessed[c.rows+fewer]); fewer-- {
	}
	for more = guesses; c.rows+more <= c.most; more++ {
		if good(&c.guessed[c.rows+more]) {
			return fewer, more
		}
	}
	return max(fewer, 0), 0
}

// times holds the newest times of steps of one kind: of so many rows, with guesses or without.
type times struct {
	last  [lastValues]float64
	n     int
	known bool    // value is
	value float64 // seconds of such a step when nothing holds it up
	at    int     // Clock.steps of the newest
}

const (
	lastValues   = 8
	leastPlain   = 5 // times after which value is known
	leastGuessed = 2 // the same of steps with guesses: fewer, since these may cost much
	someValues   = 4 // from so many times of steps with guesses on, value is the second shortest
)

// add records a time in seconds. Steps may have been held up: value is the shortest of the last times. Of steps with
// guesses it is the second shortest once there are several, so that rather too little is guessed than too much.
func (t *times) add(x float64, plain bool) {
	t.last[t.n%lastValues] = x
	if t.n++; t.n == 2*lastValues {
		t.n = lastValues
	}
	if t.n < leastGuessed || plain && t.n < leastPlain {
		return
	}
	first, second := math.Inf(1), math.Inf(1)
	for _, x := range t.last[:min(t.n, lastValues)] {
		first, second = min(first, x), min(second, max(first, x))
	}
	if t.known, t.value = true, first; !plain && t.n >= someValues {
		t.value = second
	}
}
