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
	Live   int // states and stacks that texts and masks may bring into being
}

// DefaultLimits are those of requests.
func DefaultLimits() Limits { return Limits{Steps: 6e5, States: 8000, Nodes: 70_000, Live: 300_000} }

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

func fault(where string, err error) error { return fmt.Errorf("%s: %w", where, err) }
