package grammar

import (
	"errors"
	"fmt"

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
}

// DefaultLimits are those of requests.
func DefaultLimits() Limits {
	return Limits{Steps: 6e5, States: 8000, Nodes: 70_000, Live: 32 << 20, Mask: 1e7}
}

func (l Limits) budget() lang.Budget { return lang.Budget{Steps: l.Steps, States: l.States} }

var errNothing = errors.New("no text satisfies it")

// TooLarge says that a grammar is beyond a limit.
type TooLarge struct {
	What string
	Most int
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("the grammar needs more than %d %s: write it with smaller repetitions and fewer alternatives",
		e.Most, e.What)
}

// work is what following a grammar has cost so far.
type work struct {
	size  int  // bytes that stay
	steps int  // of some 20 ns each
	from  int  // steps, when what is being done began
	most  int  // steps that it may take
	stuck bool // something took more: what is known of the text may not be all
}

// readingSteps are those that a byte of a text may take. Usual are five.
const readingSteps = 1e6

// allow begins something that may take some steps.
func (w *work) allow(steps int) {
	w.stuck = w.over()
	w.from, w.most = w.steps, steps
}

// over says that no more is to be done.
func (w *work) over() bool { return w.stuck || w.steps-w.from > w.most }

// grown says that the program has become too large, or that what was begun took too many steps.
func (p *Program) grown() error {
	switch {
	case p.size > p.limits.Live:
		return &TooLarge{"bytes for the places that a text may come to", p.limits.Live}
	case p.over():
		return &TooLarge{"steps to find what may follow at one place of a text", p.most}
	}
	return nil
}

func fault(where string, err error) error { return fmt.Errorf("%s: %w", where, err) }
