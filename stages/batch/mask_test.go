package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A sequence whose mask is not found sits steps out, and holds nobody up: others keep their steps, and get its place
// while it has none.
func TestHeldSequencesSitOut(t *testing.T) {
	m := newSim(t, Limits{Seqs: 2, Rows: 128, Wanted: 16, Beside: 32}, 64)
	var steps []string
	step := func() {
		for m.serveKV() {
		}
		m.plan()
		steps = append(steps, m.describe())
		m.finish()
	}
	bound, other := m.submit(1, prompt(4, 0), 9), m.submit(2, prompt(4, 100), 9)
	m.bound[1] = true
	m.state.Hold(bound)
	m.submit(3, prompt(4, 200), 1)
	step()
	require.Same(t, bound, m.state.NextMask())
	require.Nil(t, m.state.NextMask(), "it was asked for")
	step()
	require.True(t, m.state.Held(bound))
	m.state.Found(bound)
	step()
	step()
	require.True(t, m.state.Held(bound), "after each token")
	require.False(t, m.state.Held(other))
	m.state.NextMask()
	m.state.Found(bound)
	step()
	require.Equal(t, []string{"2 0+4*, 3 0+4*", "2 4+1*", "2 5+1*, 1 0+4*", "2 6+1*", "1 4+1*, 2 7+1*"}, steps)
	m.run()
	require.Equal(t, expected(prompt(4, 0), 9), m.got[1])
}

// A sequence that is held gives nothing up to another that lacks blocks: it goes on in a moment.
func TestHeldSequencesKeepBlocks(t *testing.T) {
	m := newSim(t, usual, 4)
	m.submit(1, prompt(60, 0), 100)
	bound := m.submit(2, prompt(100, 500), 100)
	m.serveKV()
	m.plan()
	m.finish()
	m.state.Hold(bound)
	done := bound.Done()
	for m.serveKV() || m.plan() {
		m.finish()
	}
	require.Equal(t, 2, m.state.Running())
	require.Positive(t, done)
	require.Equal(t, done, bound.Done(), "it need not be computed again")
	m.bound[2] = true
	m.run()
	require.Equal(t, expected(prompt(60, 0), 100), m.got[1])
	require.Equal(t, expected(prompt(100, 500), 100), m.got[2])
}

// Clients' masks take turns: who has many, or comes anew again and again, keeps others waiting for one of them.
func TestMasksTakeTurns(t *testing.T) {
	m := newSim(t, usual, 64)
	hold := func(id ID, client string) *Seq {
		q := &Seq{ID: id, Tokens: prompt(4, 0), Terms: &Terms{Client: client, Prompt: 4, MaxLen: 9}}
		m.state.Submit(q)
		m.state.Hold(q)
		return q
	}
	for id := ID(1); id <= 3; id++ {
		hold(id, "many")
	}
	ids := func(n int) (all []ID) {
		for range n {
			all = append(all, m.state.NextMask().ID)
		}
		return all
	}
	require.Equal(t, []ID{1}, ids(1))
	one := hold(4, "one")
	require.Equal(t, []ID{4, 2, 3}, ids(3), "who comes anew goes before who had the last one")
	m.state.Found(one)
	m.state.Hold(one)
	m.state.Found(m.state.byID[1])
	m.state.Hold(m.state.byID[1])
	require.Equal(t, []ID{4, 1}, ids(2), "who has had one waits for one")
	m.state.Found(m.state.byID[1])
	m.state.Hold(m.state.byID[1])
	hold(5, "many")
	require.Equal(t, []ID{1, 5}, ids(2), "in order, within a client")
	m.state.Cancel(5)
	for id := ID(10); id < 20; id += 2 { // one after the other, each of a client that nobody knows
		m.state.Found(one)
		m.state.Hold(one)
		waited := 0
		for got := ID(0); got != one.ID; waited++ {
			hold(id+ID(waited), "anew")
			if got = m.state.NextMask().ID; got != one.ID {
				m.state.Cancel(got)
			}
		}
		require.LessOrEqual(t, waited, 2, "whoever comes")
	}
	for id := ID(10); id < 22; id++ {
		m.state.Cancel(id)
	}
	m.state.Cancel(one.ID)
	for _, id := range []ID{1, 2, 3} {
		m.state.Cancel(id)
	}
	require.Empty(t, m.state.clients)
}
