package actors

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Law Bounded: more requests than there are places are refused, the others wait, and no mailbox ever holds more
// than the credits of its edges.
func TestBounded(t *testing.T) {
	e := startFixture(t, fixture, func(c *Config) { c.Sequences, c.Context, c.Blocks = 4, 256, 8 })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var open []*Stream
	for i := range maxSessions + 50 {
		s, err := e.Generate(plain([]int32{int32(1 + i%500), 2, 3}, 200))
		if i < maxSessions {
			require.NoError(t, err)
			open = append(open, s)
			continue
		}
		require.ErrorIs(t, err, ErrBusy)
	}
	require.Eventually(t, func() bool { s := e.Snapshot(); return s.Running == 4 && s.Waiting == maxSessions-4 },
		10*time.Second, time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(32<<20), "heap of %d waiting requests", maxSessions)
	for _, s := range open {
		s.Close()
	}
	require.Eventually(t, func() bool { return e.Snapshot().Open == 0 }, 10*time.Second, time.Millisecond)
	for _, a := range e.Snapshot().Actors {
		require.Zero(t, a.Refused, a.ID)
		require.LessOrEqual(t, a.Peak, int64(2*capacity(kindOf(a.ID))), a.ID)
	}
}

// kindOf is the kind of actor that an id names.
func kindOf(id string) string {
	kind := id
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '/' {
			kind = id[i+1:]
			break
		}
	}
	if len(kind) > 0 && kind[0] >= '0' && kind[0] <= '9' {
		return "session"
	}
	return kind
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

func (n *note) refused() { *n.answer++ }

type pressing struct{ note }

func (*pressing) urgent() {}

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
	for _, edge := range Edges() {
		t.Run(fmt.Sprintf("%s to %s, %s", edge.From, edge.To, edge.Carries), func(t *testing.T) {
			tr := newTree(zerolog.Nop(), false)
			room, refused := capacity(edge.To), 0
			s := &stuck{entered: make(chan struct{}), free: make(chan struct{})}
			pid, err := tr.system.Root.SpawnNamed(tr.props(edge.To, "stuck", nil, func(int) actor.Actor { return s }), "stuck")
			require.NoError(t, err)
			tr.send(pid, &note{"block", &refused})
			<-s.entered
			for range room + 7 {
				tr.send(pid, &note{"note", &refused})
			}
			require.Equal(t, 7, refused)
			tr.send(pid, &pressing{note{"urgent", &refused}})
			require.EqualValues(t, 7, tr.load("stuck").refused.Load())
			stopped := tr.system.Root.StopFuture(pid)
			close(s.free)
			require.NoError(t, stopped.Wait())
			require.Equal(t, []string{"block"}, s.handled)
			require.Equal(t, 7+room+1, refused, "stopping answers what was waiting")
		})
	}
}

func TestUrgentOvertakes(t *testing.T) {
	tr := newTree(zerolog.Nop(), false)
	refused := 0
	s := &stuck{entered: make(chan struct{}), free: make(chan struct{})}
	pid, err := tr.system.Root.SpawnNamed(tr.props("kv", "stuck", nil, func(int) actor.Actor { return s }), "stuck")
	require.NoError(t, err)
	tr.send(pid, &note{"block", &refused})
	<-s.entered
	tr.send(pid, &note{"first", &refused})
	tr.send(pid, &note{"second", &refused})
	tr.send(pid, &pressing{note{"urgent", &refused}})
	close(s.free)
	require.NoError(t, tr.system.Root.PoisonFuture(pid).Wait())
	require.Equal(t, []string{"block", "urgent", "first", "second"}, s.handled)
}

// fragile fails whenever it is told to.
type fragile struct{ t *tree }

func (f *fragile) Receive(c actor.Context) { f.t.lifecycle(c) }

// Supervision restarts at once, then after growing pauses, and gives up an actor that keeps failing. In virtual time.
func TestSupervision(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		tr := newTree(zerolog.Nop(), false)
		var gaveUp string
		strategy := tr.supervisor(func(child *actor.PID, _ any) { gaveUp = child.Id })
		incarnations := 0
		parent := actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				_, err := c.SpawnNamed(tr.props("kv", "parent/child", nil, func(n int) actor.Actor {
					incarnations = n + 1
					return &fragile{tr}
				}), "child")
				require.NoError(t, err)
			}
		}, actor.WithSupervisor(strategy))
		_, err := tr.system.Root.SpawnNamed(parent, "parent")
		require.NoError(t, err)
		synctest.Wait()
		child := tr.system.NewLocalPID("parent/child")

		began := now()
		for range maxRestarts {
			tr.send(child, &crash{})
			time.Sleep(2 * maxBackoff)
			synctest.Wait()
		}
		require.Equal(t, maxRestarts+1, incarnations)
		require.Empty(t, gaveUp)
		require.Less(t, now().Sub(began), restartWindow)

		time.Sleep(restartWindow) // a quiet time is forgiven
		for range maxRestarts {
			tr.send(child, &crash{})
			time.Sleep(2 * maxBackoff)
			synctest.Wait()
		}
		require.Empty(t, gaveUp)
		tr.send(child, &crash{})
		synctest.Wait()
		require.Equal(t, "parent/child", gaveUp)
		require.EqualValues(t, 2*maxRestarts, tr.load("parent/child").restarts.Load())
	})
}
