package actors

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/run"
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
		patient, time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(32<<20), "heap of %d waiting requests", maxSessions)
	for _, s := range open {
		s.Close()
	}
	left(t, e)
	for _, a := range e.Snapshot().Actors {
		require.Zero(t, a.Refused, a.ID)
		require.LessOrEqual(t, a.Peak, int64(2*e.room(a.ID)), a.ID)
	}
}

// note is a message that stands for another one.
type note struct{ refused *atomic.Int64 }

func (n *note) Refused() { n.refused.Add(1) }

// blocked is an actor that handles nothing until it is let go.
type blocked struct{ entered, free chan struct{} }

func (b *blocked) Receive(c actor.Context) {
	if _, ok := c.Message().(*note); ok && b.entered != nil {
		close(b.entered)
		b.entered = nil
		<-b.free
	}
}

// Every mailbox takes what all edges into it may bring at once, one more for a crash, and refuses the next.
func TestBoundedFlood(t *testing.T) {
	edges := Edges()
	kinds := map[string]bool{}
	for _, edge := range edges {
		require.Positive(t, edge.Credits, "%s to %s, %s", edge.From, edge.To, edge.Carries)
		kinds[edge.To] = true
	}
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := run.NewSystem(zerolog.Nop())
			at := run.Place{Kind: kind, Address: s.Address("blocked")}
			turns := run.NewTurns(false, 1)
			h := wireHouse(s, turns)
			g := wireModel(s, turns, h, "m", 1, 0).graph
			if h.graph.Capacity(at) > 1 {
				h.graph.Join(g)
				g = h.graph
			}
			room, entered, free := g.Capacity(at), make(chan struct{}), make(chan struct{})
			require.NoError(t, s.Start(run.Spec{Name: "blocked", Capacity: room,
				Produce: func(int) actor.Actor { return &blocked{entered, free} }}))
			to := run.Connect[note](run.NewGraph(s), at, at, run.Most(1), "")
			var refused atomic.Int64
			to.Send(&note{&refused})
			<-entered
			for _, edge := range edges {
				for n := 0; edge.To == kind && n < edge.Credits; n++ {
					to.Send(&note{&refused})
				}
			}
			require.Zero(t, refused.Load())
			to.Send(&note{&refused})
			require.Zero(t, refused.Load())
			to.Send(&note{&refused})
			require.EqualValues(t, 1, refused.Load())
			stopped := make(chan error)
			go func() { stopped <- s.Stop(at.Address) }()
			close(free)
			require.NoError(t, <-stopped)
		})
	}
}
