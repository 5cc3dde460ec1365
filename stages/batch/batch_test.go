package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var usual = Limits{Seqs: 8, Rows: 128, Wanted: 16, Beside: 32}

func prompt(n int, salt int32) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = salt + int32(i)
	}
	return out
}

// expected is what a sequence alone would have generated.
func expected(prompt []int32, most int) []int32 {
	all := append([]int32{}, prompt...)
	for range most {
		all = append(all, next(all))
	}
	return all[len(prompt):]
}

// Steps read “ID position+rows”, with * where a token is wanted.
func TestPlan(t *testing.T) {
	tests := []struct {
		name  string
		setup func(*sim)
		want  []string
	}{
		{"prefill in chunks", func(m *sim) { m.submit(1, prompt(300, 0), 2) },
			[]string{"1 0+128", "1 128+128", "1 256+44*", "1 300+1*", "idle"}},
		{"decodes come first, prefill fills a smaller budget", func(m *sim) {
			m.submit(1, prompt(3, 0), 3)
			m.submit(2, prompt(200, 500), 1)
		}, []string{"1 0+3*, 2 0+125", "1 3+1*, 2 125+32", "1 4+1*, 2 157+32", "2 189+11*", "idle"}},
		{"a shared prefix is not computed again", func(m *sim) {
			m.submit(1, prompt(130, 0), 1)
			m.run()
			m.submit(2, prompt(130, 0), 1)
		}, []string{"2 128+2*", "idle"}},
		{"a cached prompt keeps one token to compute", func(m *sim) {
			m.submit(1, prompt(128, 0), 1)
			m.run()
			m.submit(2, prompt(128, 0), 1)
		}, []string{"2 64+64*", "idle"}},
		{"a score wants every row and takes nothing from the cache", func(m *sim) {
			m.submit(1, prompt(40, 0), 1)
			m.run()
			m.submit(2, prompt(40, 0), 0).Score = true
		}, []string{"2 0+16*", "2 16+16*", "2 32+8*", "idle"}},
		{"a prompt ends in a step that has room for its logits", func(m *sim) {
			m.submit(1, prompt(20, 0), 0).Score = true
			m.submit(2, prompt(3, 500), 1)
		}, []string{"1 0+16*", "1 16+4*, 2 0+3*", "idle"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newSim(t, usual, 64)
			test.setup(m)
			var got []string
			for range test.want {
				for m.serveKV() {
				}
				m.plan()
				got = append(got, m.describe())
				m.finish()
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestEndsAreTold(t *testing.T) {
	m := newSim(t, usual, 64)
	stopAt := expected(prompt(5, 0), 4)[2]
	m.submit(1, prompt(5, 0), 10).Ends = func(id int32) bool { return id == stopAt }
	m.submit(2, prompt(5, 900), 4)
	m.run()
	require.Equal(t, EndToken, m.ended[1])
	require.Len(t, m.got[1], 3)
	require.Equal(t, EndLength, m.ended[2])
	require.Zero(t, m.state.Len())
	require.Equal(t, 0, m.cache.Stats().Used)
}

func TestWithoutCreditASequenceWaits(t *testing.T) {
	m := newSim(t, usual, 64)
	q := m.submit(1, prompt(4, 0), 100)
	for m.serveKV() {
	}
	for range Window {
		require.True(t, m.plan())
		m.flying = nil
		for _, p := range m.parts {
			m.state.Advance(p, 0)
			m.state.Append(p.Seq, 7)
		}
		m.serveKV()
	}
	require.False(t, m.plan())
	require.True(t, m.state.Starved(q))
	m.state.Consumed(q, 1)
	require.True(t, m.plan())
}

func TestTooFewBlocksForAnySequence(t *testing.T) {
	m := newSim(t, usual, 2)
	m.submit(1, prompt(300, 0), 4)
	m.submit(2, prompt(20, 700), 4)
	m.run()
	require.True(t, m.failed[1])
	require.Equal(t, expected(prompt(20, 700), 4), m.got[2])
}

func TestSuspectsRunAlone(t *testing.T) {
	m := newSim(t, usual, 64)
	a, b := m.submit(1, prompt(4, 0), 4), m.submit(2, prompt(4, 50), 4)
	for m.serveKV() {
	}
	require.True(t, m.plan())
	require.Len(t, m.parts, 2)
	require.Nil(t, m.strike(), "which one it was is not known yet")
	require.True(t, m.plan())
	require.Equal(t, "1 0+4*", m.describe())
	m.finish() // innocent
	require.True(t, m.plan())
	require.Equal(t, "2 0+4*", m.describe())
	require.Same(t, b, m.strike())
	m.state.Finish(b)
	m.run()
	require.Equal(t, expected(prompt(4, 0), 4), m.got[a.ID])
}

// Whatever arrives, leaves, fails and is recomputed in whatever order: every sequence that stays gets exactly its own
// tokens, and all blocks come back.
func TestHistoryProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Seqs: rapid.IntRange(1, 5).Draw(t, "seqs"), Rows: rapid.IntRange(8, 96).Draw(t, "rows"), Wanted: 8}
		l.Beside = rapid.IntRange(6, l.Rows).Draw(t, "beside")
		m := newSim(t, l, rapid.IntRange(6, 24).Draw(t, "blocks"))
		m.rows = rapid.IntRange(1, l.Rows).Draw(t, "target")
		prompts, cancelled := map[ID][]int32{}, map[ID]bool{}
		for id := ID(1); id <= 12; id++ {
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				m.serveKV()
				if m.plan() && rapid.IntRange(0, 9).Draw(t, "luck") > 0 {
					m.finish()
				}
			}
			switch rapid.SampledFrom([]string{"submit", "submit", "submit", "cancel", "reset"}).Draw(t, "event") {
			case "submit":
				prompts[id] = prompt(rapid.IntRange(1, 200).Draw(t, "len"), int32(rapid.IntRange(0, 3).Draw(t, "salt")))
				m.submit(id, prompts[id], 20)
			case "cancel":
				victim := ID(rapid.IntRange(1, int(id)).Draw(t, "victim"))
				cancelled[victim] = true
				m.state.Cancel(victim)
			case "reset":
				m.reset()
			}
		}
		m.run()
		for id, p := range prompts {
			if !cancelled[id] {
				require.Equal(t, expected(p, 20), m.got[id], "sequence %d", id)
			}
		}
		require.Zero(t, m.state.Len())
		require.Zero(t, m.state.Running()+m.state.Waiting())
		require.Zero(t, m.cache.Stats().Used)
	})
}

// A prompt may fill a step alone; with others it keeps to the rows of several.
func TestAlone(t *testing.T) {
	m := newSim(t, usual, 64)
	m.rows, m.alone = 16, 64
	var steps []string
	step := func() {
		m.serveKV()
		require.True(t, m.plan())
		steps = append(steps, m.describe())
		m.finish()
	}
	m.submit(1, prompt(100, 0), 3)
	m.submit(2, prompt(30, 1), 3)
	for range 5 {
		step()
	}
	require.Equal(t, []string{"1 0+64", "1 64+36*", "1 100+1*, 2 0+16", "1 101+1*, 2 16+14*", "2 30+1*"}, steps)
}

// Prompts that come while others decode, and decodes that are many, go on however slow a row is.
func TestFewRowsLeaveNobodyOut(t *testing.T) {
	m := newSim(t, Limits{Seqs: 8, Rows: 128, Wanted: 16, Beside: 32}, 64)
	m.rows = 4
	for id := ID(1); id <= 6; id++ {
		m.submit(id, prompt(1, int32(id)*100), 100)
	}
	for m.serveKV() {
	}
	for range 2 {
		m.plan()
		m.finish()
	}
	m.submit(7, prompt(40, 900), 100)
	for m.serveKV() {
	}
	m.plan()
	require.Equal(t, "1 2+1*, 2 2+1*, 3 2+1*, 4 2+1*, 5 2+1*, 6 2+1*, 7 0+16", m.describe())
}

// A request on which the device dies is found also when it dies late in the prompt, and the restart in between begins
// at its start.
func TestPoisonInALaterChunk(t *testing.T) {
	m := newSim(t, usual, 64)
	bad := m.submit(1, prompt(300, 0), 4)
	m.submit(2, prompt(300, 500), 4)
	deaths := 0
	for range 100 {
		for m.serveKV() {
		}
		if !m.plan() {
			break
		}
		failed := false
		for _, p := range m.parts {
			failed = failed || p.Seq == bad && bad.Done() <= 200 && 200 < bad.Done()+p.Rows
		}
		if !failed {
			m.finish()
			continue
		}
		deaths++
		q := m.strike()
		m.reset()
		if q != nil {
			require.Same(t, bad, q)
			m.state.Finish(q)
		}
	}
	require.LessOrEqual(t, deaths, 2)
	require.Equal(t, expected(prompt(300, 500), 4), m.got[2])
}

// Who does not read gives blocks and place up to those who do, and goes on when it reads again.
func TestUnreadSequencesGiveWay(t *testing.T) {
	for name, l := range map[string]Limits{
		"blocks": {Seqs: 8, Rows: 128, Wanted: 16, Beside: 32},
		"places": {Seqs: 1, Rows: 128, Wanted: 16, Beside: 32},
	} {
		t.Run(name, func(t *testing.T) {
			m := newSim(t, l, 5)
			slow := m.submit(1, prompt(200, 0), 100)
			m.unread = slow
			m.run()
			require.True(t, m.state.Starved(slow))
			m.submit(2, prompt(200, 500), 40)
			m.run()
			require.Equal(t, expected(prompt(200, 500), 40), m.got[2])
			m.state.Consumed(slow, slow.Sent()-Window/2-1)
			m.run()
			require.Len(t, m.got[1], Window, "not before half a window is read")
			m.unread = nil
			m.state.Consumed(slow, slow.Sent()-Window/2)
			m.run()
			require.Equal(t, expected(prompt(200, 0), 100), m.got[1])
			require.Zero(t, m.cache.Stats().Used)
		})
	}
}

// A score has no credit between two chunks, as its client has its rows in hand: it keeps blocks and place meanwhile.
func TestScoresDoNotGiveWay(t *testing.T) {
	for name, l := range map[string]Limits{
		"blocks": {Seqs: 8, Rows: 64, Wanted: 16, Beside: 32},
		"places": {Seqs: 1, Rows: 64, Wanted: 16, Beside: 32},
	} {
		t.Run(name, func(t *testing.T) {
			m := newSim(t, l, 5)
			score := &Seq{ID: 1, Tokens: prompt(200, 0), Terms: &Terms{MaxLen: 200, Score: true}}
			score.Owner = score
			m.unread = score
			m.state.Submit(score)
			m.run()
			require.Equal(t, 16, score.Done())
			m.submit(2, prompt(200, 500), 40)
			for done := 16; done < 200; done += 16 {
				m.run()
				require.Equal(t, done, score.Done(), "nothing is computed again")
				m.state.Consumed(score, score.Sent())
			}
			m.run()
			require.Equal(t, expected(prompt(200, 500), 40), m.got[2])
			require.Zero(t, m.cache.Stats().Used)
		})
	}
}
