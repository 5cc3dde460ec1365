package actors

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
)

// masks accepts Flush and mask, from the scheduler.
//
// mask asks for the tokens that may follow those of a sequence. The sequence is left out of steps until the same
// struct returns as the answer; until then, masks owns the constraint.
type mask struct {
	gen    uint64
	seq    *batch.Seq
	bound  *constrain.Constraint
	answer []int32      // its tokens; read-only
	gone   *atomic.Bool // nobody wants the mask any more

	err error // answer
}

func (*mask) Late()      {}
func (*mask) Poisonous() {}

// masksAhead is how many masks are asked for at a time: the next one is there when one has been found.
const masksAhead = 2

type masksEdges struct {
	restarted run.Edge[torn]
	answer    run.Edge[mask]
}

// torn says that masks has restarted, and on which mask it failed.
type torn = run.Restarted[mask]

// masks finds those masks that take too long to be found between two steps, one after the other, on a goroutine of its
// own. The scheduler decides whose mask is next.
type masks struct {
	system      *run.System
	out         masksEdges
	working     *atomic.Pointer[mask] // what it works on; its incarnations share this
	begins      func()                // called before each mask
	incarnation int
	gen         uint64
}

func (k *masks) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if k.incarnation > 0 {
			k.out.restarted.Send(&torn{During: k.working.Swap(nil)})
		}
	case *run.Flush:
		k.gen = m.Gen
		m.Done()
	case *mask:
		if m.gen == k.gen {
			k.working.Store(m)
			k.begins()
			k.find(m)
			k.working.Store(nil)
			k.out.answer.Send(m)
		}
	default:
		k.system.Lifecycle(c)
	}
}

// stretch is how many steps of a grammar are taken before the goroutine yields its core: they take some tenths of a
// millisecond, as a step of a small model does.
const stretch = 20_000

func (k *masks) find(m *mask) {
	m.err = m.bound.Follow(m.answer, constrain.Grant{Steps: stretch, More: func() bool {
		runtime.Gosched()
		return !m.gone.Load()
	}})
	if errors.As(m.err, new(*grammar.TooLarge)) {
		m.err = m.bound.In(fmt.Errorf("after %d tokens of the answer, %w", len(m.answer), m.err))
	}
}
