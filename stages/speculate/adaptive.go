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
	drafts *Drafts          // of a draft model; nil: there is none
	known  [trusts]estimate // by trust: how often guesses are right
	trust  Trust            // of the newest guesses
	length int              // guesses that were chosen for the text of at tokens
	wanted int              // guesses that a draft model should make of it, in place of those of length
	looks  bool             // they are wanted only to learn what they gain
	at     int              // tokens of the newest text; -1: none
	Again  bool             // the rows of right guesses are computed once more, by the next step
	mean   float64          // guesses of a step, of late
	tries  int              // steps with guesses since another number of them was tried
	buffer []int32
}

// NewAdaptive begins with usual rates of right guesses. The clock, and what is known of a draft model, are shared by
// all sequences of a model. There need not be a source, nor a draft model.
func NewAdaptive(from Source, clock *Clock, drafts *Drafts) *Adaptive {
	a := &Adaptive{from: from, clock: clock, drafts: drafts, at: -1, buffer: make([]int32, 0, MostGuesses)}
	for i, right := range [trusts]float64{Scant: 0.4, Some: 0.6, Much: 0.8, Told: 0.8} {
		a.known[i] = newEstimate(right)
	}
	if drafts != nil {
		a.known[Drafted] = newEstimate(drafts.known.right())
	}
	return a
}

// Ready says whether there are guesses for a text that are worth a step of their own, or a draft model should make
// some.
func (a *Adaptive) Ready(text []int32) bool {
	if a.at != len(text) {
		a.at = len(text)
		a.look(text)
		a.mean += (float64(max(a.length, a.wanted)) - a.mean) / lateGuess
	}
	return a.length > 0 || a.wanted > 0
}

// look chooses who guesses how a text goes on, and how many tokens.
func (a *Adaptive) look(text []int32) {
	due := a.wanted > 0 && a.looks // the text went on before the draft model was asked, as steps in flight have it
	a.buffer, a.trust, a.length, a.wanted = a.buffer[:0], Scant, 0, 0
	gain := 1.0
	if a.from != nil {
		a.buffer, a.trust = a.from.Guess(text, MostGuesses, a.buffer)
		a.length, gain = a.choose(&a.known[a.trust], len(a.buffer))
	}
	if a.drafts != nil && gain < math.Inf(1) {
		if due {
			a.wanted, a.looks = fewGuesses, true
		} else if n, g := a.draft(); g > gain {
			a.wanted, a.looks = n, math.IsInf(g, 1)
		}
	}
}

// Drafts is how many tokens after a text a draft model should guess, before the next step; 0: none.
func (a *Adaptive) Drafts(text []int32) int {
	a.Ready(text)
	return a.wanted
}

// Looks says whether these guesses are to be made only to learn what they gain.
func (a *Adaptive) Looks() bool { return a.looks }

// Drafted takes what a draft model has guessed of the text that Drafts was asked for. If that is nothing, the other
// source's guesses are proposed, and what was to be learned is learned soon.
func (a *Adaptive) Drafted(guesses []int32) {
	if len(guesses) == 0 && a.wanted > 0 && a.looks {
		a.drafts.unlooked()
	}
	if n := min(len(guesses), a.wanted); n > 0 {
		a.buffer, a.trust, a.length = append(a.buffer[:0], guesses[:n]...), Drafted, n
	}
	a.wanted = 0
}

// Propose appends the guesses, at most n.
func (a *Adaptive) Propose(text []int32, n int, out []int32) []int32 {
	if !a.Ready(text) {
		return out
	}
	return append(out, a.buffer[:min(a.length, n)]...)
}

// ByDraft says whether a draft model made the newest guesses.
func (a *Adaptive) ByDraft() bool { return a.trust == Drafted }

// Settle tells how many guesses a step had, and how many were right: all those before the first that was not.
func (a *Adaptive) Settle(guesses, right int) {
	a.known[a.trust].add(guesses, right)
	if a.trust == Drafted && a.drafts != nil {
		a.drafts.known.add(guesses, right)
	}
	if a.Again {
		a.mean += float64(right) / lateGuess
	}
}

// Undrafted is told that there is no draft model any more.
func (a *Adaptive) Undrafted() { a.drafts, a.wanted = nil, 0 }

// least is the gain in throughput, of all sequences of a step together, from which on tokens are guessed: times are
// not measured more exactly.
const least = 0.05

// choose is how many of n guesses, which cost nothing to find, are worth their rows, and what they gain: infinitely
// much, if they are tried only to learn how often they are right.
func (a *Adaptive) choose(e *estimate, n int) (best int, gain float64) {
	if n == 0 || !a.clock.Known() {
		return 0, 1
	}
	could := false
	for _, k := range lengths {
		could = could || a.gain(1, k, 0) > a.worth()
	}
	if best, gain = a.best(e, n, 0); best > 0 {
		return a.beside(best, n), gain
	}
	if best = e.look(could); best > 0 {
		return best, math.Inf(1)
	}
	return 0, 1
}

// best is the number of guesses, at most n, with which a sequence is fastest by the estimate e, and how many times as
// fast as without guesses that is; 0 if none is worth it. each is the time of finding a guess, where a step without
// guesses is 1.
func (a *Adaptive) best(e *estimate, n int, each float64) (best int, gain float64) {
	gain = a.worth()
	for _, k := range lengths {
		if k > n {
			break
		}
		if g := a.gain(e.right(), k, each); g > gain {
			best, gain = k, g
		}
	}
	return best, gain
}

// draft is choose for a draft model's guesses. All sequences wait for the one that has most made, so that it is decided
// for all together how many are worth it, and then for this one how many of these.
func (a *Adaptive) draft() (best int, gain float64) {
	if !a.clock.Known() {
		return 0, 1
	}
	d := a.drafts
	e := &a.known[Drafted]
	if most := d.most(a.clock, e); most > 0 {
		if best, gain = a.best(e, most, d.cost(a.clock)/d.beside); best > 0 {
			d.pays()
			return a.beside(best, most), gain
		}
		if a.clock.Rows() > 1 { // the others may go on
			d.pays()
			return 0, 1
		}
	}
	if best = d.look(a.clock); best > 0 {
		return best, math.Inf(1)
	}
	return 0, 1
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
func (a *Adaptive) gain(right float64, k int, each float64) float64 {
	rows, gives, more := float64(a.clock.Rows()), Expected(right, k), k
	if a.Again {
		more += int(gives - 0.5)
	}
	return (rows - 1 + gives) / rows / (float64(k)*each + a.clock.Cost(more, a.clock.Others(a.mean)))
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
	over         float64 // guesses that the rate is taken over, roughly
	wait, pause  int     // steps without a guess before one is made to learn: those that are left, and all
}

const (
	first      = 2.0 // how many guesses the usual rate counts as
	newest     = 24  // guesses that a sequence's rate is taken over
	leastPause = 16
	mostPause  = 512
)

func newEstimate(right float64) estimate {
	return estimate{hits: right * first, misses: (1 - right) * first, over: newest, wait: leastPause, pause: leastPause}
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
	keep := 1 - 1/e.over
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
