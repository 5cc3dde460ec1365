package speculate

import (
	"math"
	"slices"
)

// MostGuesses is how many tokens are guessed at a time, at most.
const MostGuesses = 15

// lengths are the numbers of guesses that Adaptive chooses among.
var lengths = [...]int{1, 2, 3, 5, 7, 11, MostGuesses}

// Adaptive proposes for one sequence as many guesses as give most tokens in the time that its steps take. Where any
// number would make it slower that is none, apart from one now and then, to see whether that has changed.
type Adaptive struct {
	from   Source
	clock  *Clock
	each   float64          // cost of finding one guess, in steps of one row
	known  [trusts]estimate // by trust: how often guesses are right
	trust  Trust            // of the newest guesses
	length int              // guesses that Ready chose for the text of at tokens
	at     int              // tokens of the newest text; -1: none
	Again  bool             // the rows of right guesses are computed once more, by the next step
	mean   float64          // guesses of a step, of late
	tries  int              // steps with guesses since another number of them was tried
	buffer []int32
}

// NewAdaptive begins with usual rates of right guesses. The clock is shared by all sequences of a model; each is
// what finding one guess costs, in steps of one row.
func NewAdaptive(from Source, clock *Clock, each float64) *Adaptive {
	a := &Adaptive{from: from, clock: clock, each: each, at: -1, buffer: make([]int32, 0, MostGuesses)}
	for i, right := range [trusts]float64{Scant: 0.4, Some: 0.6, Much: 0.8, Told: 0.8} {
		a.known[i] = newEstimate(right)
	}
	return a
}

// Ready says whether there are guesses for a text that are worth a step of their own.
func (a *Adaptive) Ready(text []int32) bool {
	if a.at != len(text) {
		a.at = len(text)
		a.buffer, a.trust = a.from.Guess(text, MostGuesses, a.buffer[:0])
		a.length = a.choose(len(a.buffer))
		a.mean += (float64(a.length) - a.mean) / lateGuess
	}
	return a.length > 0
}

// Propose appends the guesses, at most n.
func (a *Adaptive) Propose(text []int32, n int, out []int32) []int32 {
	if !a.Ready(text) {
		return out
	}
	return append(out, a.buffer[:min(a.length, n)]...)
}

// Settle tells how many guesses a step had, and how many were right: all those before the first that was not.
func (a *Adaptive) Settle(guesses, right int) {
	a.known[a.trust].add(guesses, right)
	if a.Again {
		a.mean += float64(right) / lateGuess
	}
}

// least is the gain in throughput, of all sequences of a step together, from which on tokens are guessed: times are
// not measured more exactly.
const least = 0.05

// choose is how many of n guesses are worth their cost.
func (a *Adaptive) choose(n int) (best int) {
	if n == 0 || !a.clock.Known() {
		return 0
	}
	e := &a.known[a.trust]
	gain, could := a.worth(), false
	for _, k := range lengths {
		could = could || a.gain(1, k) > a.worth()
		if k > n {
			break
		}
		if g := a.gain(e.right(), k); g > gain {
			best, gain = k, g
		}
	}
	if best == 0 {
		return e.look(could)
	}
	return a.beside(best, n)
}

// betweenTries is the number of steps with guesses after which a neighbouring number of guesses is tried, if its
// time was not measured lately.
const betweenTries = 8

// beside is the number of guesses that is best, as far as is known, or now and then the one before or after it.
func (a *Adaptive) beside(best, n int) int {
	if a.tries++; a.tries < betweenTries {
		return best
	}
	at, others := slices.Index(lengths[:], best), a.clock.Others(a.mean)
	for _, other := range [2]int{at - 1, at + 1} {
		if other >= 0 && other < len(lengths) && lengths[other] <= n && !a.clock.Fresh(others+lengths[other]) {
			a.tries = 0
			return lengths[other]
		}
	}
	return best
}

// gain is the throughput of a step with k guesses, each right with probability right, as a multiple of that without
// guesses. The other sequences of the step wait for the guesses and get one token each.
func (a *Adaptive) gain(right float64, k int) float64 {
	rows, gives, more := float64(a.clock.Rows()), Expected(right, k), k
	if a.Again {
		more += int(gives - 0.5)
	}
	return (rows - 1 + gives) / rows / (float64(k)*a.each + a.clock.Cost(more, a.clock.Others(a.mean)))
}

// worth is the gain from which on this sequence's guesses are worth it: least, divided among the rows of a step.
func (a *Adaptive) worth() float64 { return 1 + least/float64(a.clock.Rows()) }

// Expected is the mean number of tokens that a step gives with k guesses, each of which is right with probability
// right if those before it are.
func Expected(right float64, k int) float64 {
	if right > 1-1e-9 {
		return float64(k + 1)
	}
	return (1 - math.Pow(right, float64(k+1))) / (1 - right)
}

// estimate is how often guesses are right, by the newest ones, and when one is made to learn that although guesses
// do not pay.
type estimate struct {
	hits, misses float64
	wait, pause  int // steps without a guess before one is made to learn: those that are left, and all
}

const (
	first      = 2.0 // how many guesses the usual rate counts as
	newest     = 24  // guesses that the rate is taken over, roughly
	leastPause = 16
	mostPause  = 512
)

func newEstimate(right float64) estimate {
	return estimate{hits: right * first, misses: (1 - right) * first, wait: leastPause, pause: leastPause}
}

func (e *estimate) right() float64 { return e.hits / (e.hits + e.misses) }

// add records a step. After the first wrong guess nothing is known of the others.
func (e *estimate) add(guesses, right int) {
	if guesses == 0 {
		return
	}
	for range right {
		e.weigh(1, 0)
	}
	if right < guesses {
		e.weigh(0, 1)
	}
	switch {
	case right == guesses: // look again soon
		e.pause = leastPause
	case right == 0:
		e.pause = min(2*e.pause, mostPause)
	}
}

func (e *estimate) weigh(hit, miss float64) {
	const keep = 1 - 1.0/newest
	e.hits, e.misses = e.hits*keep+hit, e.misses*keep+miss
}

// look is how many guesses are to be made only to learn how often they are right: one after each pause, else 0.
// could says whether guesses could pay if all were right; if not, the pause is as long as it may be.
func (e *estimate) look(could bool) int {
	if e.wait--; e.wait > 0 {
		return 0
	}
	if !could {
		e.pause = mostPause
	}
	e.wait = e.pause
	return 1
}
