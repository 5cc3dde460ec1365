package batch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// oneTable is that of a cache of one class.
func oneTable(blocks ...int32) []backend.Table { return []backend.Table{{Blocks: blocks}} }

// A short request does not pass a long one that waits for blocks, or the long one might wait for ever.
func TestNobodyPassesWhoWaitsForBlocks(t *testing.T) {
	m := newSim(t, usual, 6)
	m.submit(1, prompt(200, 0), 40)
	for m.serveKV() {
	}
	m.submit(2, prompt(200, 500), 4) // 4 blocks, of which 2 are there
	m.serveKV()
	m.submit(3, prompt(20, 900), 4)
	for m.state.Live(m.state.Seqs()[0]) {
		for m.serveKV() {
		}
		require.Equal(t, 1, m.state.Running(), "beside the first one")
		require.True(t, m.plan())
		m.finish()
	}
	m.run()
	require.Equal(t, expected(prompt(200, 500), 4), m.got[2])
	require.Equal(t, expected(prompt(20, 900), 4), m.got[3])
}

// Nobody is preempted while an answer is due that may bring the blocks.
func TestNobodyGivesWayWhileAnAnswerIsDue(t *testing.T) {
	m := newSim(t, usual, 64)
	for id := ID(1); id <= 2; id++ {
		q := m.submit(id, prompt(64, int32(id)*100), 40)
		r := m.state.NextKV(q)
		require.Equal(t, KVOpen, r.Op)
		m.state.KVDone(q, r, oneTable(int32(id)), 0) // one block, which the prompt fills
	}
	require.True(t, m.plan())
	m.finish()
	first, second := m.state.Seqs()[0], m.state.Seqs()[1]
	for _, q := range m.state.Seqs() {
		r := m.state.NextKV(q)
		require.Equal(t, KVPass, r.Op)
		m.state.KVDone(q, r, oneTable(int32(q.ID)), 0)
		require.Equal(t, KVGrow, m.state.NextKV(q).Op)
	}
	m.state.KVRefused(first)
	require.False(t, m.plan())
	require.Equal(t, 2, m.state.Running(), "the second one's answer is due")
	m.state.KVRefused(second)
	require.False(t, m.plan())
	require.Equal(t, 1, m.state.Running(), "now one has to give way")
}

// The rows that a step is to have are those of decodes and prompts together.
func TestDecodesCount(t *testing.T) {
	m := newSim(t, usual, 64)
	for id := ID(1); id <= 6; id++ {
		m.submit(id, prompt(1, int32(id)*100), 100)
	}
	for m.serveKV() {
	}
	m.plan()
	m.finish()
	m.submit(7, prompt(60, 900), 100)
	for m.serveKV() {
	}
	m.rows = 24
	m.plan()
	require.Equal(t, "1 1+1*, 2 1+1*, 3 1+1*, 4 1+1*, 5 1+1*, 6 1+1*, 7 0+18", m.describe())
}

// Scores share the rows whose logits a step has room for.
func TestScoresShareTheLogits(t *testing.T) {
	m := newSim(t, usual, 64)
	m.submit(1, prompt(40, 0), 0).Score = true
	m.submit(2, prompt(40, 500), 0).Score = true
	var got []string
	for range 6 {
		for m.serveKV() {
		}
		m.plan()
		require.LessOrEqual(t, len(m.step.Wanted), usual.Wanted)
		got = append(got, m.describe())
		m.finish()
	}
	require.Equal(t, []string{"1 0+16*", "1 16+16*", "1 32+8*, 2 0+8*", "2 8+16*", "2 24+16*", "idle"}, got)
}

// What came from the cache is there already: it is not published again. Credit, once given back, is not taken away.
func TestNothingIsToldTwice(t *testing.T) {
	m := newSim(t, usual, 64)
	q := m.submit(1, prompt(130, 0), 100)
	r := m.state.NextKV(q)
	require.Equal(t, KVOpen, r.Op)
	m.state.KVDone(q, r, oneTable(1, 2, 3), 128)
	require.Equal(t, KVNone, m.state.NextKV(q).Op)

	for range Window {
		require.True(t, m.plan())
		m.flying = nil
		m.state.Advance(m.parts[0], 0)
		m.state.Append(q, 7)
	}
	require.True(t, m.state.Starved(q))
	m.state.Consumed(q, 5)
	m.state.Consumed(q, 0)
	require.False(t, m.state.Starved(q))
}
