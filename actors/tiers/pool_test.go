package tiers

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/place"
)

// borrower is an uploader as the pool sees it.
type borrower struct{ granted chan int }

func (b *borrower) Receive(c actor.Context) {
	if m, ok := c.Message().(*granted); ok {
		b.granted <- m.slab
	}
}

// The pool lends no slab that another uploader may still write to: not before who held it has settled in its new
// generation, and after a restart, when it does not know who held what, not before all have.
func TestPoolWaitsUntilSettled(t *testing.T) {
	s := run.NewSystem(zerolog.Nop())
	g := run.NewGraph(s)
	at := func(name string) run.Place { return run.Place{Kind: name, Address: s.Address(name)} }
	a, b, there := &borrower{make(chan int, 100)}, &borrower{make(chan int, 100)}, at("pool")
	users, grant := poolEdges{}, map[string]run.Edge[granted]{}
	for name, who := range map[string]*borrower{"a": a, "b": b} {
		users.restarted = append(users.restarted, run.Tell[struct{}](g, there, at(name)))
		grant[name] = run.Connect[granted](g, there, at(name), run.Most(100), "")
		require.NoError(t, s.Start(run.Spec{Name: name, Capacity: 200, Produce: func(int) actor.Actor { return who }}))
	}
	p := newPool(s, users, 1)
	p.users["a"], p.users["b"] = &leases{gen: 1}, &leases{gen: 1}
	ask := func(by string, gen uint64) {
		p.waiting = append(p.waiting, &lease{by: by, gen: gen, reply: grant[by]})
		p.grant()
	}
	settle := func(by string) { p.settle(&settled{by: by, gen: p.users[by].gen}) }
	ask("a", 1)
	settle("a")
	require.Len(t, p.waiting, 1, "b may still write where it wrote before the pool restarted")
	settle("b")
	require.Empty(t, p.waiting)
	for range place.Slabs {
		ask("a", 1)
	}
	require.Len(t, p.waiting, 1, "all slabs are lent")
	p.begin("a", 2)
	require.Empty(t, p.waiting, "what was asked for in the older generation")
	ask("b", 1)
	require.Len(t, p.waiting, 1, "a has not settled")
	settle("a")
	require.Empty(t, p.waiting)
	require.Eventually(t, func() bool { return len(a.granted) == place.Slabs && len(b.granted) == 1 },
		5*time.Second, time.Millisecond)
	require.NoError(t, errors.Join(s.Stop(s.Address("a")), s.Stop(s.Address("b"))))
}
