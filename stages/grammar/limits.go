package grammar

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// Limits bound what a grammar from a stranger may cost. Work is counted, not timed, so that a grammar is refused or
// taken on every machine alike; DefaultLimits keep compiling below 100 ms and 64 MB on the slowest that we know.
type Limits struct {
	Steps  int // of compiling regular languages
	States int // of one regular language
	Nodes  int // of all rules together
	Live   int // bytes of the states and stacks that texts and masks may bring into being
	Mask   int // steps to find the tokens that may follow, at one place of a text
	Node   int // the same for each node of the vocabulary's trie, where that is more
}

// DefaultLimits are the limits for grammars of requests.
func DefaultLimits() Limits {
	return Limits{Steps: 6e5, States: 8000, Nodes: 70_000, Live: 32 << 20, Mask: 1e6, Node: 32}
}

func (l Limits) budget() lang.Budget { return lang.Budget{Steps: l.Steps, States: l.States} }

var errNothing = errors.New("no text satisfies it")

// TooLarge says that a grammar is beyond a limit.
type TooLarge struct {
	What string
	Most int
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("the grammar needs more than %d %s: write it with smaller repetitions, fewer alternatives, "+
		"and one way to read a text", e.Most, e.What)
}

// ErrPaused is the error of an operation that needs more steps than were granted. It goes on when it is called again
// with another grant.
var ErrPaused = errors.New("the steps that were granted to the grammar are used up")

// work counts what following a grammar has cost, and bounds what it may cost.
type work struct {
	size  int // bytes of states and stacks, which stay
	steps int // of some 20 ns each

	until   int // steps, after which halted decides whether there may be more: the lesser of end and granted
	end     int // steps, after which the present operation has taken too many
	most    int // steps that the present operation may take
	granted int // steps, after which more is called
	more    func() bool
	batch   int // steps that more grants

	stuck  bool // an operation took too many: what is known of the text may not be all
	paused bool // more was refused
}

// readingSteps is how many steps a byte of a text may take; about five are usual.
const readingSteps = 1e6

// Grant lets the program's matchers and maskers take so many steps from now on, and as many again whenever more says
// so. Without more, or once it refuses, what goes on ends with ErrPaused. A program that nobody grants anything has no
// bound but its limits.
func (p *Program) Grant(steps int, more func() bool) {
	p.granted, p.batch, p.more, p.paused = p.steps+steps, steps, more, false
}

// Steps is how many steps the program has taken, in all.
func (p *Program) Steps() int { return p.steps }

// begin resets the counts after compiling, which has limits of its own.
func (w *work) begin() { *w = work{granted: math.MaxInt} }

// allow begins an operation that may take so many steps.
func (w *work) allow(steps int) {
	w.end, w.most = w.steps+steps, steps
	w.until = min(w.end, w.granted)
	if w.stuck || w.paused {
		w.until = -1
	}
}

// over says whether the present operation has to stop.
func (w *work) over() bool { return w.steps > w.until && w.halted() }

// halted asks for more steps, unless the present operation took too many.
func (w *work) halted() bool {
	for w.steps > w.until && !w.stuck && !w.paused {
		switch {
		case w.steps > w.end:
			w.stuck = true
		case w.more != nil && w.more():
			w.granted = w.steps + w.batch
			w.until = min(w.end, w.granted)
		default:
			w.paused = true
		}
	}
	return w.stuck || w.paused
}

// grown returns an error if the program has become too large, or the present operation had to stop.
func (p *Program) grown() error {
	switch {
	case p.size > p.limits.Live:
		return &TooLarge{"bytes for the places that a text may come to", p.limits.Live}
	case !p.over():
		return nil
	case p.stuck:
		return &TooLarge{"steps to find what may follow at one place of a text", p.most}
	}
	return ErrPaused
}

// sorting is the cost of sorting n frames, in steps.
func sorting(n int) int { return n * bits.Len(uint(n)) / 4 }

func fault(where string, err error) error { return fmt.Errorf("%s: %w", where, err) }
