package run

import (
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

type ask struct{ reply Edge[tell] }
type tell struct{ n int }

// TestGraph: a mailbox has room for the credits of all edges to it, and for a crash.
func TestGraph(t *testing.T) {
	g := NewGraph(nil)
	client, server, other := Place{Kind: "client"}, Place{Kind: "server"}, Place{Kind: "other"}
	asks := Count[ask](g, client, server, 5, "it waits").Twice()
	Connect[tell](g, server, client, Each(asks.Edge), "one an ask")
	Connect[tell](g, other, server, Most(2).Again(), "two")
	Connect[Restarted[tell]](g, other, server, Most(1), "one a restart")
	Partner(g, server, client)
	require.Equal(t, []Declared{
		{"client", "server", "ask", Bound{10, "counted, twice"}, "it waits"},
		{"server", "client", "tell", Bound{10, "each ask"}, "one an ask"},
		{"other", "server", "tell", Bound{4, "protocol, twice"}, "two"},
		{"other", "server", "Restarted", Bound{1, "protocol"}, "one a restart"},
		{"server", "client", "Flush", Bound{18, "protocol"}, "one a restart, and restarts are bounded"},
		{"client", "server", "Flushed", Bound{18, "each Flush"}, "an answer to each"},
	}, g.Edges())
	require.Equal(t, 10+4+1+18+1, g.Capacity(server))
	require.Equal(t, 10+18+1, g.Capacity(client))
	require.Equal(t, 1, g.Capacity(other))
}

// TestCounted: whatever the senders do at once, they hold no more credits than there are.
func TestCounted(t *testing.T) {
	g := NewGraph(nil)
	edge := Count[ask](g, Place{Kind: "client"}, Place{Kind: "server"}, 3, "it waits").Twice()
	for range 3 {
		require.True(t, edge.Take())
	}
	require.Equal(t, []Credits{{"client", "server", "ask", 3, 3}}, g.Credits())
	require.False(t, edge.Take(), "room for twice as many is no right to them")
	require.Equal(t, 2, edge.Give())
	require.True(t, edge.Take())
	require.Equal(t, 3, edge.Held())
	edge.Reset()
	require.Zero(t, edge.Held())
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 1000 {
				if edge.Take() {
					if n := edge.Held(); n > 3 {
						t.Errorf("%d credits are held", n)
					}
					edge.Give()
				}
			}
		})
	}
	senders.Wait()
	require.Zero(t, edge.Held())
}

// TestReplies: an answer goes to who asked, though the one who answers was built without an edge to it.
func TestReplies(t *testing.T) {
	s := NewSystem(zerolog.Nop())
	server := Place{Kind: "server", Address: s.Address("server")}
	require.NoError(t, s.Start(Spec{Name: "server", Capacity: 4, Produce: func(int) actor.Actor {
		return actor.ReceiveFunc(func(c actor.Context) {
			if m, ok := c.Message().(*ask); ok {
				m.reply.Send(&tell{7})
			}
		})
	}}))
	g := NewGraph(s)
	asks := Connect[ask](g, Place{Kind: "client"}, server, Most(1), "")
	replies := Connect[tell](g, server, Place{Kind: "client"}, Each(asks), "")
	for _, name := range []string{"one", "two"} {
		heard := make(chan int, 1)
		require.NoError(t, s.Start(Spec{Name: name, Capacity: 4, Produce: func(int) actor.Actor {
			return actor.ReceiveFunc(func(c actor.Context) {
				if m, ok := c.Message().(*tell); ok {
					heard <- m.n
				}
			})
		}}))
		asks.Send(&ask{replies.At(s.Address(name))})
		require.Equal(t, 7, <-heard)
	}
}

// TestPartners: a generation begins when each partner has answered for it.
func TestPartners(t *testing.T) {
	s := NewSystem(zerolog.Nop())
	at := func(name string) Place { return Place{Kind: name, Address: s.Address(name)} }
	flushed := make(chan *Flushed, 8)
	held := make(chan *Flush, 8)
	receive := func(c actor.Context) {
		switch m := c.Message().(type) {
		case *Flush:
			held <- m
		case *Flushed:
			flushed <- m
		}
	}
	for _, name := range []string{"leader", "first", "second"} {
		require.NoError(t, s.Start(Spec{Name: name, Capacity: 8, Produce: func(int) actor.Actor {
			return actor.ReceiveFunc(receive)
		}}))
	}
	partners := Partner(NewGraph(s), at("leader"), at("first"), at("second"))
	waiting := partners.Flush(5)
	one, two := <-held, <-held
	require.EqualValues(t, 5, one.Gen)
	for range 2 { // to hear it twice is not to hear it from both
		one.Done()
		m := <-flushed
		require.EqualValues(t, 5, m.Gen)
		waiting.Done(m)
		require.NotZero(t, waiting)
	}
	two.Done()
	waiting.Done(<-flushed)
	require.Zero(t, waiting)
}

// TestSendAllocatesNothing: a token costs several messages.
func TestSendAllocatesNothing(t *testing.T) {
	s := NewSystem(zerolog.Nop())
	turns := NewTurns(true, 8)
	heard := make(chan struct{}, 1)
	require.NoError(t, s.Start(Spec{Name: "server", Capacity: 4, Line: &turns.Steps, Produce: func(int) actor.Actor {
		return actor.ReceiveFunc(func(c actor.Context) {
			if _, ok := c.Message().(*tell); ok {
				heard <- struct{}{}
			}
		})
	}}))
	edge := Count[tell](NewGraph(s), Place{}, Place{}, 1, "")
	to, m := s.Address("server"), new(tell)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		require.True(t, edge.Take())
		edge.At(to).Send(m)
		<-heard
		edge.Give()
	}))
}
