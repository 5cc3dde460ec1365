package speculate

import (
	"math"
	"time"
)

// Shape is what a model's steps cost before any is measured, in any unit: Fixed whatever the rows, Row for each, and
// Experts in so far as rows go to different ones: of Count in each layer to Used.
type Shape struct {
	Fixed, Row, Experts float64
	Count, Used         int
}

// Cost is that of a step of so many rows.
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

// mostRows is how many rows of a step are told apart.
const mostRows = 64

// Clock learns what steps of answers cost by their rows, with guesses and without.
type Clock struct {
	shape   Shape
	plain   [mostRows + 1]times
	guessed [mostRows + 1]times
	rows    int // of the newest step, guesses apart
	steps   int
}

// validSteps is for how many steps what one cost is taken for what it costs: then it is measured again. Of guesses it
// still counts for more than what the shape says.
const validSteps = 256

// NewClock expects what the shape says until it has measured.
func NewClock(s Shape) *Clock {
	if s.Cost(1) <= 0 {
		s = Shape{Fixed: 1}
	}
	return &Clock{shape: s, rows: 1}
}

// Observe takes the time of a step that gave tokens only: its rows, and how many of these were guesses.
func (c *Clock) Observe(rows, guesses int, took time.Duration) {
	c.rows = max(rows-guesses, 1)
	c.steps++
	if took <= 0 || rows > mostRows {
		return
	}
	t, least := &c.plain[rows], leastValues
	if guesses > 0 {
		t, least = &c.guessed[rows], leastGuessed
	}
	if c.steps-t.at > validSteps {
		t.n = 0
	}
	t.at = c.steps
	t.add(took.Seconds(), least)
}

// Fresh says whether it was measured lately what a step with so many guesses costs.
func (c *Clock) Fresh(guesses int) bool {
	return c.rows+guesses <= mostRows && c.valid(&c.guessed[c.rows+guesses])
}

func (c *Clock) valid(t *times) bool { return t.known && c.steps-t.at <= validSteps }

// Rows is how many rows the newest step had, guesses apart.
func (c *Clock) Rows() int { return c.rows }

// Known says whether it is known what a step of now costs without guesses.
func (c *Clock) Known() bool {
	if c.rows+MostGuesses > mostRows {
		return false // so many wait for a step that nothing is left over
	}
	m := &c.plain[c.rows]
	return c.valid(m)
}

// Cost is that of a step with so many guesses, in steps of now without: what was measured, else what the shape says of
// it beside the nearest that was.
func (c *Clock) Cost(guesses int) float64 {
	before := c.shape.Cost(c.rows)
	rises := c.shape.Cost(c.rows+guesses) - before
	n := c.nearest(guesses)
	if n == 0 || !c.Known() {
		return 1 + rises/before
	}
	ratio := 1.0
	if n != guesses {
		ratio = float64(guesses) / float64(n)
		if rose := c.shape.Cost(c.rows+n) - before; rose > 0 {
			ratio = rises / rose
		}
	}
	measured := c.guessed[c.rows+n].value / c.plain[c.rows].value
	return 1 + max(measured-1, 0)*ratio
}

// nearest is a number of guesses that was measured, lately if any was, and as near as possible to the one asked for;
// 0: none was.
func (c *Clock) nearest(guesses int) (other int) {
	for away := range MostGuesses {
		for _, k := range [2]int{guesses - away, guesses + away} {
			if k <= 0 || c.rows+k > mostRows || !c.guessed[c.rows+k].known {
				continue
			}
			if c.Fresh(k) {
				return k
			}
			if other == 0 {
				other = k
			}
		}
	}
	return other
}

// times are the last ones of steps of a kind.
type times struct {
	last  [lastValues]float64
	n     int
	known bool    // value is
	value float64 // what such a step takes where nothing holds it up
	at    int     // Clock.steps of the newest
}

const (
	lastValues   = 8
	leastValues  = 3 // that say something
	leastGuessed = 2 // of steps with guesses, which may be dear
)

// add takes in a time. A step that was held up says nothing of the others: of a few times the shortest is taken, of
// more the second.
func (t *times) add(x float64, least int) {
	t.last[t.n%lastValues] = x
	if t.n++; t.n == 2*lastValues {
		t.n = lastValues
	}
	if t.n < least {
		return
	}
	first, second := math.Inf(1), math.Inf(1)
	for _, x := range t.last[:min(t.n, lastValues)] {
		first, second = min(first, x), min(second, max(first, x))
	}
	if t.known, t.value = true, first; t.n > leastValues {
		t.value = second
	}
}
