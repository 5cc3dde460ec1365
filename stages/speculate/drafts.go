package speculate

import "time"

// Drafts learns what guesses of a draft model cost, and how often they are right, over all sequences of its target.
type Drafts struct {
	each        float64 // cost of a guess that is expected before any is measured, in steps of the target of one row
	took        times   // seconds of a guess
	beside      float64 // sequences for which tokens are guessed at once, of late
	known       estimate
	wait, pause int     // chances before a few guesses are made only to learn what they gain: those that are left, and all
	spare       float64 // steps that reading may take only to learn what guesses gain
	looks       int     // of how many chances of a look the draft model may yet make use
	open        int     // how many sequences of a step may still make such guesses: together they cost each less
}

const (
	newestOfAll = 96  // guesses that the rate of all sequences is taken over
	usualDraft  = 0.7 // how often guesses of draft models are right, before any was tried
	fewGuesses  = 3   // that are made to learn what they gain
	firstLook   = 8   // chances of a sequence before the first of these
	laterLook   = 64  // after guesses that did pay
	lastLook    = 4096
	firstSpare  = 50   // steps: what may be read at first only to learn
	moreSpare   = 0.01 // and for each step more
	lateDraft   = 2    // guesses that beside is taken over, roughly
)

// NewDrafts expects a guess to cost each, in steps of the target of one row.
func NewDrafts(each float64) *Drafts {
	d := &Drafts{each: each, known: newEstimate(usualDraft), beside: 1, wait: firstLook, pause: firstLook,
		spare: firstSpare}
	d.known.over = newestOfAll
	return d
}

// Observe records how long it took until the draft model had guessed tokens for so many sequences at once, of each at
// most so many.
func (d *Drafts) Observe(guesses, sequences int, took time.Duration) {
	if guesses == 0 || sequences == 0 || took <= 0 {
		return
	}
	d.took.add(took.Seconds()/float64(guesses), false)
	d.beside += (float64(sequences) - d.beside) / lateDraft
}

// cost is what one guess costs, in steps without guesses.
func (d *Drafts) cost(c *Clock) float64 {
	if d.took.known && c.base > 0 {
		return d.took.value / c.base
	}
	return d.each
}

// most is how many guesses of each sequence give most tokens, if as many sequences as of late have guesses made; 0 if
// none are worth it. A sequence that is alone is judged by its own guesses.
func (d *Drafts) most(c *Clock, own *estimate) (best int) {
	e := &d.known
	if c.Rows() == 1 {
		e = own
	}
	gain := 1 + least
	for _, k := range lengths {
		if g := d.gain(c, e.right(), k); g > gain {
			best, gain = k, g
		}
	}
	return best
}

// gain is the throughput of steps with k guesses for each sequence that has some made, as a multiple of that without.
func (d *Drafts) gain(c *Clock, right float64, k int) float64 {
	rows := float64(c.Rows())
	some := min(d.beside, rows)
	return (rows + some*(Expected(right, k)-1)) / rows / (float64(k)*d.cost(c) + c.times(int(float64(k)*some+0.5)))
}

// look is how many guesses are to be made only to learn what they gain, by all sequences of a step: a few after each
// pause, else 0. The draft model has to read what it has missed for them, so that pauses double until guesses pay; if
// they could not pay, were all of them right, the pause is as long as it may be.
func (d *Drafts) look(c *Clock) int {
	d.spare = min(d.spare+moreSpare/float64(c.Rows()), firstSpare)
	if d.open > 0 {
		d.open--
		return fewGuesses
	}
	if d.wait--; d.wait > 0 {
		return 0
	}
	if d.pause = min(2*d.pause, lastLook); d.took.known && d.gain(c, 1, fewGuesses) < 1 && d.gain(c, 1, MostGuesses) < 1 {
		d.pause = lastLook
	}
	d.wait, d.open, d.looks = d.pause*c.Rows(), c.Rows()-1, c.Rows()
	return fewGuesses
}

// unlooked is told that the draft model was not ready for a look. If it was not for any of the step, there is another
// one with the next chance.
func (d *Drafts) unlooked() {
	if d.looks--; d.looks == 0 {
		d.wait, d.pause = 1, max(d.pause/2, firstLook)
	}
}

// pays is told that guesses are worth their cost.
func (d *Drafts) pays() { d.wait, d.pause, d.open = laterLook, laterLook, 0 }

// Lost is told that the draft model has lost all that it had read. What reading that took to learn counts no more.
func (d *Drafts) Lost() { d.spare, d.wait, d.pause, d.open = firstSpare, firstLook, firstLook, 0 }

// Reads says whether it is time for the draft model to read tokens that it has missed, each of which costs row, in
// steps of the target, so that it can guess n tokens after them. It is, once the answer has taken as long as that: so
// an answer that ends soon loses little. Where it is only to learn what guesses gain, all that it takes is a small part
// of the time that answers take.
func (d *Drafts) Reads(missed, answered int, row float64, looks bool) bool {
	cost := float64(missed) * row
	switch {
	case cost > float64(answered):
		return false
	case !looks:
		return true
	case cost > d.spare:
		return false
	}
	d.spare -= cost
	return true
}
