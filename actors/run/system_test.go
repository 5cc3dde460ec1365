package run

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// start starts an actor named stuck.
func start(t *testing.T, s *System, capacity int, a actor.Actor) *actor.PID {
	require.NoError(t, s.Start(Spec{Name: "stuck", Capacity: capacity, Produce: func(int) actor.Actor { return a }}))
	return s.Address("stuck")
}

// stuck is an actor that handles nothing until it is let go.
type stuck struct {
	entered, free chan struct{}
	handled       []string
}

type note struct {
	text   string
	answer *int
}

func (n *note) Refused() { *n.answer++ }

type pressing struct{ note }

func (*pressing) Urgent() {}

func (s *stuck) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *note:
		if m.text == "block" {
			close(s.entered)
			<-s.free
		}
		s.handled = append(s.handled, m.text)
	case *pressing:
		s.handled = append(s.handled, m.text)
	}
}

// Every mailbox takes exactly what it was made for, answers what it refuses, lets urgent messages overtake, and is
// stopped even when it is full; what it had not handled then is answered too.
func TestMailboxFlood(t *testing.T) {
	for _, room := range []int{1, 2, 13, 600} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			tr := NewSystem(zerolog.Nop())
			refused := 0
			s := &stuck{entered: make(chan struct{}), free: make(chan struct{})}
			pid := start(t, tr, room, s)
			tr.proto.Root.Send(pid, &note{"block", &refused})
			<-s.entered
			for range room + 7 {
				tr.proto.Root.Send(pid, &note{"note", &refused})
			}
			require.Equal(t, 7, refused)
			tr.proto.Root.Send(pid, &pressing{note{"urgent", &refused}})
			require.EqualValues(t, 7, tr.load("stuck").refused.Load())
			stopped := tr.proto.Root.StopFuture(pid)
			close(s.free)
			require.NoError(t, stopped.Wait())
			require.Equal(t, []string{"block"}, s.handled)
			require.Equal(t, 7+room+1, refused, "stopping answers what was waiting")
		})
	}
}

func TestUrgentOvertakes(t *testing.T) {
	tr := NewSystem(zerolog.Nop())
	refused := 0
	s := &stuck{entered: make(chan struct{}), free: make(chan struct{})}
	pid := start(t, tr, 3, s)
	tr.proto.Root.Send(pid, &note{"block", &refused})
	<-s.entered
	tr.proto.Root.Send(pid, &note{"first", &refused})
	tr.proto.Root.Send(pid, &note{"second", &refused})
	tr.proto.Root.Send(pid, &pressing{note{"urgent", &refused}})
	close(s.free)
	require.NoError(t, tr.proto.Root.PoisonFuture(pid).Wait())
	require.Equal(t, []string{"block", "urgent", "first", "second"}, s.handled)
}

// fragile fails whenever it is told to.
type fragile struct{ t *System }

func (f *fragile) Receive(c actor.Context) { f.t.Lifecycle(c) }

// Supervision restarts at once, then after growing pauses, and gives up an actor that keeps failing. In virtual time.
func TestSupervision(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		tr := NewSystem(zerolog.Nop())
		var gaveUp string
		strategy := tr.Supervisor(func(child *actor.PID, _ any) { gaveUp = child.Id })
		incarnations := 0
		parent := actor.ReceiveFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				require.NoError(t, tr.Spawn(c, Spec{Name: "child", Capacity: 1, Produce: func(n int) actor.Actor {
					incarnations = n + 1
					return &fragile{tr}
				}}))
			}
		})
		require.NoError(t, tr.Start(Spec{Name: "parent", Capacity: 1, Children: strategy,
			Produce: func(int) actor.Actor { return parent }}))
		synctest.Wait()
		child := tr.Address("parent/child")

		began := now()
		for range MaxRestarts {
			tr.Crash(child)
			time.Sleep(2 * maxBackoff)
			synctest.Wait()
		}
		require.Equal(t, MaxRestarts+1, incarnations)
		require.Empty(t, gaveUp)
		require.Less(t, now().Sub(began), restartWindow)

		time.Sleep(restartWindow) // a quiet time is forgiven
		for range MaxRestarts {
			tr.Crash(child)
			time.Sleep(2 * maxBackoff)
			synctest.Wait()
		}
		require.Empty(t, gaveUp)
		tr.Crash(child)
		synctest.Wait()
		require.Equal(t, "parent/child", gaveUp)
		require.EqualValues(t, 2*MaxRestarts, tr.load("parent/child").restarts.Load())
	})
}

// poison is work that its receiver fails on.
type poison struct{}

func (*poison) Poisonous() {}

// poisoned fails on poison, and says so after its restart.
type poisoned struct {
	fragile
	again bool
	tell  Edge[Restarted[poison]]
}

func (p *poisoned) Receive(c actor.Context) {
	switch c.Message().(type) {
	case *actor.Started:
		if p.again {
			p.tell.Send(&Restarted[poison]{})
		}
	case *poison:
		panic("poison")
	default:
		p.fragile.Receive(c)
	}
}

// TestRestartsFit: a receiver that handles nothing has room for a message of each restart that supervision allows,
// also of those on work of others, of which it allows many more.
func TestRestartsFit(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		tr := NewSystem(zerolog.Nop())
		refused, gaveUp := 0, false
		s := &stuck{entered: make(chan struct{}), free: make(chan struct{})}
		child, receiver := Place{Kind: "child", Address: tr.Address("parent/child")}, Place{Kind: "stuck", Address: tr.Address("stuck")}
		g := NewGraph(tr)
		tell := Tell[poison](g, child, receiver)
		start(t, tr, g.Capacity(receiver)-1, s) // without the room for a crash
		tr.proto.Root.Send(receiver.Address, &note{"block", &refused})
		<-s.entered
		parent := actor.ReceiveFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				require.NoError(t, tr.Spawn(c, Spec{Name: "child", Capacity: 1, Produce: func(n int) actor.Actor {
					return &poisoned{fragile{tr}, n > 0, tell}
				}}))
			}
		})
		require.NoError(t, tr.Start(Spec{Name: "parent", Capacity: 1, Produce: func(int) actor.Actor { return parent },
			Children: tr.Supervisor(func(*actor.PID, any) { gaveUp = true })}))
		synctest.Wait()
		for i := range MaxRestarts + maxPoisoned {
			if i < MaxRestarts {
				tr.Crash(child.Address)
				time.Sleep(2 * maxBackoff)
			} else {
				tr.proto.Root.Send(child.Address, &poison{})
			}
			synctest.Wait()
		}
		require.False(t, gaveUp)
		require.EqualValues(t, MaxRestarts+maxPoisoned, tr.load("parent/child").restarts.Load())
		require.Zero(t, tr.load("stuck").refused.Load())
		tr.proto.Root.Send(child.Address, &poison{})
		synctest.Wait()
		require.True(t, gaveUp)
		close(s.free)
		require.NoError(t, tr.Stop(tr.Address("parent")))
		require.NoError(t, tr.Stop(receiver.Address))
	})
}

// clumsy is an actor with a mistake.
type clumsy struct{ fragile }

func (c *clumsy) Receive(x actor.Context) {
	if _, ok := x.Message().(*note); ok {
		_ = []int{}[len(x.Children())]
	}
	c.fragile.Receive(x)
}

// TestStack: who dies of a mistake in the program leaves in the log where that is; who fails on purpose says why.
func TestStack(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tr := NewSystem(zerolog.New(&log))
		parent := actor.ReceiveFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				require.NoError(t, tr.Spawn(c, Spec{Name: "clumsy", Capacity: 1,
					Produce: func(int) actor.Actor { return &clumsy{fragile{tr}} }}))
			}
		})
		require.NoError(t, tr.Start(Spec{Name: "parent", Capacity: 1, Produce: func(int) actor.Actor { return parent },
			Children: tr.Supervisor(func(*actor.PID, any) {})}))
		synctest.Wait()
		child := tr.Address("parent/clumsy")
		failed := func(do func()) string {
			log.Reset()
			do()
			time.Sleep(2 * maxBackoff)
			synctest.Wait()
			return log.String()
		}
		said := failed(func() { tr.proto.Root.Send(child, &note{}) })
		require.Contains(t, said, "index out of range")
		require.Contains(t, said, "(*clumsy).Receive")
		said = failed(func() { tr.Crash(child) })
		require.Contains(t, said, "crashed on demand")
		require.NotContains(t, said, "stack")
		require.NoError(t, tr.Stop(tr.Address("parent")))
	})
}
