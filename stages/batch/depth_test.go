package batch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// newDeep has steps that cost as many rows as fixed says, beside their own, and rows that cost one more behind each
// pass/fixed positions.
func newDeep(t require.TestingT, l Limits, flight, fixed, pass int) *sim {
	l.Pass = pass
	m := newTimed(t, l, flight)
	m.rows, m.alone = 512, 512
	m.fixed, m.start = fixed, time.Duration(fixed)*answerRow
	m.cost = func(q *Seq, p Part) time.Duration {
		depth := float64(q.done*max(fixed, 1)) / float64(pass)
		return time.Duration(float64(p.Rows) * (1 + depth) * float64(answerRow))
	}
	return m
}

// answering completes steps until sequences 1 to n have all begun to answer.
func (m *sim) answering(n int) {
	for id := ID(1); int(id) <= n; {
		if m.going(1, 0); len(m.got[id]) > 0 {
			id++
		}
	}
}

// tokens is how many tokens all answers have, but for one.
func (m *sim) tokens(but ID) (all int) {
	for id, got := range m.got {
		if id != but {
			all += len(got)
		}
	}
	return all
}

// TestDeepAnswersTakeTurns: beside answers behind long texts one behind a short text takes at most as many times as
// long as alone as there are clients; those behind long texts have their share of the time too.
func TestDeepAnswersTakeTurns(t *testing.T) {
	const pass, deepAt, tokens = 160, 2000, 300
	for _, fixed := range []int{0, 1, 4, 16} {
		if testing.Short() && fixed > 1 {
			break
		}
		for _, hogs := range []int{1, 2} {
			for _, answers := range []int{1, 4} {
				for _, flight := range []int{1, 3} {
					l := beside
					l.Draws = flight > 1
					timed := func(hogs int) (each time.Duration, share float64) {
						m := newDeep(t, l, flight, fixed, pass)
						for id := ID(1); int(id) <= hogs*answers; id++ {
							m.submitOf(fmt.Sprint("hog", int(id)%hogs), id, prompt(deepAt, int32(id)*100_000), 5000)
						}
						m.answering(hogs * answers)
						m.submitOf("stranger", 1000, prompt(20, 9_000_000), tokens)
						began, before := m.now, m.tokens(1000)
						took, flying := m.until(1000)
						row := time.Duration((1 + float64(deepAt*max(fixed, 1))/pass) * float64(answerRow))
						deep := time.Duration(m.tokens(1000)-before) * row
						return (took - flying) / tokens, float64(deep) / float64(m.now-began)
					}
					alone, _ := timed(0)
					took, share := timed(hogs)
					t.Logf("fixed %d, %d hogs, %d answers each, %d in flight: %v alone, %v (%.2f); rows of hogs %.2f of the time",
						fixed, hogs, answers, flight, alone, took, float64(took)/float64(alone), share)
					require.LessOrEqual(t, float64(took), 1.05*float64(hogs+1)*float64(alone))
					require.Greater(t, share, 0.7*float64(hogs)/float64(hogs+1))
				}
			}
		}
	}
}

// TestOneTurnAStep: of several clients with rows for which a step has no room, one has its turn in it.
func TestOneTurnAStep(t *testing.T) {
	m := newDeep(t, beside, 1, 1, 100)
	for id := ID(1); id <= 3; id++ {
		m.submitOf(fmt.Sprint("hog", id), id, prompt(2000, int32(id)*100_000), 500)
	}
	m.answering(3)
	m.submitOf("stranger", 4, prompt(1, 9_000_000), 500)
	deep := map[ID]int{}
	for range 200 {
		for m.serveKV() || m.plan() {
		}
		parts := m.flying[0].parts
		require.LessOrEqual(t, len(parts), 2)
		for _, p := range parts {
			deep[p.Seq.ID]++
		}
		m.back()
	}
	require.Len(t, deep, 4)
	require.InDelta(t, deep[1], deep[2], 1)
	require.InDelta(t, deep[2], deep[3], 1)
}

// TestDepthIsNoMatterAlone: a client's answers behind long texts share all steps if nobody else asks, or if all ask
// behind texts as long.
func TestDepthIsNoMatterAlone(t *testing.T) {
	for _, clients := range []int{1, 3} {
		m := newDeep(t, beside, 1, 2, 1000)
		for id := ID(1); id <= 3; id++ {
			m.submitOf(fmt.Sprint("client", int(id)%clients), id, prompt(8000, int32(id)*100_000), 500)
		}
		m.answering(3)
		for range 100 {
			for m.serveKV() || m.plan() {
			}
			require.Len(t, m.flying[0].parts, 3)
			m.back()
		}
	}
}

// TestDeepAnswersGetOn: whatever the depths and costs, every answer ends, and no client waits much longer than its turn
// is away.
func TestDeepAnswersGetOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fixed, pass := rapid.IntRange(0, 20).Draw(t, "fixed"), rapid.IntRange(50, 5000).Draw(t, "pass")
		m := newDeep(t, beside, rapid.IntRange(1, 2).Draw(t, "flight"), fixed, pass)
		n := rapid.IntRange(2, 6).Draw(t, "answers")
		for id := ID(1); int(id) <= n; id++ {
			client := fmt.Sprint("client", rapid.IntRange(0, 3).Draw(t, "client"))
			m.submitOf(client, id, prompt(rapid.IntRange(1, 3000).Draw(t, "depth"), int32(id)*100_000), 30)
		}
		for id := ID(1); int(id) <= n; id++ {
			if m.ended[id] == NotEnded {
				m.until(id)
			}
		}
	})
}
