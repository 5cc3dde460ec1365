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
