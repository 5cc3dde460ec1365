package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What each of three sequences waits for, move by move, where one at a time has a place.
func TestWhatSequencesWaitFor(t *testing.T) {
	m := newSim(t, Limits{Seqs: 1, Rows: 4, Wanted: 4, Beside: 4}, 64)
	first, second := m.submit(1, prompt(6, 0), 40), m.submit(2, prompt(4, 100), 1)
	require.Equal(t, WaitPlace, m.state.Awaits(first))
	m.askKV()
	require.Equal(t, WaitBlocks, m.state.Awaits(first))
	require.Equal(t, WaitPlace, m.state.Awaits(second))
	m.answerKV(1)
	require.Equal(t, WaitTurn, m.state.Awaits(first))
	m.plan()
	require.Equal(t, WaitStep, m.state.Awaits(first))
	m.finish()
	require.Equal(t, WaitTurn, m.state.Awaits(first), "half of its prompt is read")
	m.state.Hold(first)
	require.Equal(t, WaitMask, m.state.Awaits(first))
	m.state.Found(first)
	m.unread = first
	for m.serveKV() || m.plan() {
		m.finish()
	}
	require.Equal(t, WaitReader, m.state.Awaits(first))
	m.state.Cancel(1)
	require.Equal(t, WaitNothing, m.state.Awaits(first))
}

// A sequence that gave its blocks up waits for blocks, not for a place.
func TestPreemptedSequencesWaitForBlocks(t *testing.T) {
	m := newSim(t, usual, 4)
	m.submit(1, prompt(60, 0), 150)
	last := m.submit(2, prompt(60, 500), 100)
	for last.reached == 0 {
		m.serveKV()
		m.plan()
		m.finish()
	}
	for m.serveKV() {
	}
	require.Equal(t, WaitBlocks, m.state.Awaits(last))
}
