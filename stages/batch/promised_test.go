package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A promised sequence has rows before those that came first, and prompts beside its answer only as many rows as cost
// little; of each client one at a time.
func TestPromisedSequencesComeFirst(t *testing.T) {
	m := newSim(t, Limits{Seqs: 3, Rows: 64, Wanted: 8, Beside: 64}, 64)
	m.submitOf("a", 1, prompt(200, 0), 5)
	keep := func(id ID, client string, n int) *Seq {
		q := &Seq{ID: id, Tokens: prompt(n, 1000*int32(id)),
			Terms: &Terms{Client: client, Prompt: n, MaxLen: n + 9, Promised: true}}
		m.state.Submit(q)
		return q
	}
	first, second := keep(2, "b", 80), keep(3, "b", 80)
	var steps []string
	for range 4 {
		for m.serveKV() {
		}
		m.plan()
		steps = append(steps, m.describe())
		m.finish()
	}
	require.Equal(t, []string{"2 0+64", "2 64+16*, 1 0+48", "2 80+1*, 1 48+16", "2 81+1*, 1 64+16"}, steps)
	require.True(t, first.kept)
	require.False(t, second.kept)
	m.state.Cancel(2)
	require.True(t, second.kept, "it is its client's first one now")
}

// A promised sequence gets the place of another that was not promised anything, and keeps it when clients take turns.
func TestPromisedSequencesGetPlaces(t *testing.T) {
	m := newSim(t, Limits{Seqs: 1, Rows: 64, Wanted: 8, Beside: 64}, 64)
	m.submitOf("a", 1, prompt(50, 0), 500)
	for range 3 {
		m.serveKV()
		m.plan()
		m.finish()
	}
	q := &Seq{ID: 2, Tokens: prompt(50, 1000), Terms: &Terms{Client: "b", Prompt: 50, MaxLen: 450, Promised: true}}
	m.state.Submit(q)
	for i := range 300 {
		for m.serveKV() {
		}
		m.plan()
		m.finish()
		require.True(t, i < 3 || len(q.Tokens) > 50, "it waits for the other's turn to end")
	}
	require.Greater(t, len(q.Tokens), 300, "the other has its turn when it has ended")
	m.run()
	require.Equal(t, expected(prompt(50, 0), 500), m.got[1])
	require.Equal(t, EndLength, m.ended[2])
}

// Who foresees steps is told what a sequence that waits will find cached, and who plays them goes on as it stands.
func TestStandingIsTold(t *testing.T) {
	m := newSim(t, Limits{Seqs: 1, Rows: 64, Wanted: 8, Beside: 64}, 64)
	m.submitOf("a", 1, prompt(80, 0), 500)
	for range 3 {
		m.serveKV()
		m.plan()
		m.finish()
	}
	m.state.Submit(&Seq{ID: 2, Tokens: prompt(200, 1000), Terms: &Terms{Client: "b", Prompt: 200, MaxLen: 250, Cached: 128}})
	all := m.state.Ahead(nil)
	require.Len(t, all, 2)
	runs, waits := all[0], all[1]
	require.True(t, runs.Runs)
	require.Equal(t, []int{81, 1, 2, 81}, []int{runs.At, runs.Left, runs.Sent, runs.Ran})
	require.False(t, waits.Runs)
	require.True(t, waits.Reading)
	require.Equal(t, []int{128, 72, 0, 128}, []int{waits.At, waits.Left, waits.Sent, waits.Ran})

	for n := 0; !all[1].Runs; n++ { // until the other has its turn
		require.Less(t, n, 300)
		for m.serveKV() {
		}
		m.plan()
		m.finish()
		all = m.state.Ahead(nil)
	}
	require.False(t, all[0].Runs)
	require.Equal(t, 64, all[0].At, "its blocks stay in the prefix tree")
	require.LessOrEqual(t, all[0].Ran, 0, "it has yet to come to where it was")

	played := New(m.state.limits)
	q := &Seq{ID: 1, Tokens: make([]int32, 1), Terms: &Terms{Client: "a", MaxLen: 9}}
	played.Submit(q)
	a := Ahead{At: 80, Runs: true, Ran: 60, Had: 7, Rows: -5}
	played.Resume(q, &a)
	require.EqualValues(t, 7, q.client.due.had)
	require.Equal(t, played.clock-5, q.client.had)
	require.Equal(t, 60-80/4, q.ran(), "of a stint that is longer by a quarter of what came before")
	a.Runs = false
	played.Resume(q, &a)
	require.Equal(t, 60, q.ran())
}
