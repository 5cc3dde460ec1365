package batch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/stages/kv"
)

// What rows take in these tests, where nothing else is said: a hog's prompts are read far behind their begin.
const (
	answerRow = 700 * time.Microsecond
	deepRow   = 20 * time.Millisecond
	nearRow   = 100 * time.Microsecond
)

func costs(q *Seq, p Part) time.Duration {
	switch {
	case p.Answers():
		return time.Duration(p.Rows) * answerRow
	case q.Client[0] == 'h':
		return time.Duration(p.Rows) * deepRow
	}
	return time.Duration(p.Rows) * nearRow
}

// newTimed has steps as actors/pace bounds them where rows are that dear.
func newTimed(t require.TestingT, l Limits, flight int) *sim {
	m := newSimOf(t, l, flight, kv.Class{Blocks: 2000})
	m.cost, m.rows, m.alone = costs, 16, 16
	return m
}

// until completes steps until one of the sequences has ended, and says how long that took and how long the steps did
// that were in flight when it began.
func (m *sim) until(id ID) (took, before time.Duration) {
	for m.serveKV() || m.plan() {
	}
	for _, f := range m.flying {
		all, _ := m.takes(f)
		before += all
	}
	from := m.now
	for m.ended[id] == NotEnded {
		for m.serveKV() || m.plan() {
		}
		require.NotEmpty(m.t, m.flying)
		m.back()
	}
	return m.now - from, before
}

var beside = Limits{Seqs: 32, Rows: 512, Wanted: 64, Beside: 128}

// TestStrangersHaveTheirTime: beside clients that send long prompts whose rows are dear, a stranger's answer takes as
// many times as long as alone as there are clients, and besides what the steps take that are in flight when it comes.
func TestStrangersHaveTheirTime(t *testing.T) {
	for _, hogs := range []int{1, 2} {
		for _, strangers := range []int{1, 2} {
			for _, tokens := range []int{16, 1000} {
				for _, draws := range []bool{false, true} {
					l, flight := beside, 1
					if draws {
						l.Draws, flight = true, 3
					}
					timed := func(hogs int) (took, before time.Duration) {
						m := newTimed(t, l, flight)
						for id := ID(1); int(id) <= 2*hogs; id++ {
							m.submitOf(fmt.Sprint("hog", int(id)%hogs), id, prompt(8000, int32(id)*100_000), 10)
						}
						m.going(5, 0)
						for m.serveKV() || m.plan() {
						}
						for i := range strangers {
							m.submitOf(fmt.Sprint("stranger", i), ID(1000+i), prompt(20, int32(9000*i)), tokens)
						}
						return m.until(1000)
					}
					alone, _ := timed(0)
					alone /= time.Duration(strangers)
					took, before := timed(hogs)
					t.Logf("%d and %d clients, %d tokens, %d in flight: %v alone, %v, and %v before", hogs, strangers, tokens,
						flight, alone, took-before, before)
					require.LessOrEqual(t, took-before, time.Duration(hogs+strangers)*alone+time.Duration(flight)*(deepRow+answerRow))
				}
			}
		}
	}
}

// TestPromptsHaveTheirTime: however long strangers answer, a client's prompts have as much of the time as each of them,
// and more where these gain by sharing steps; also if its own answers go on beside its prompts.
func TestPromptsHaveTheirTime(t *testing.T) {
	tests := []struct {
		name      string
		strangers int
		start     time.Duration // of each step
		own       bool          // the client has an answer too
		want      float64       // of the time
	}{
		{"beside one", 1, 0, false, 1.0 / 2},
		{"beside two", 2, 0, false, 1.0 / 3},
		{"beside four that share what a step costs", 4, 5 * time.Millisecond, false, 8.0 / 19},
		{"beside an answer of its own", 1, 0, true, 1.0 / 9},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newTimed(t, beside, 1)
			m.start, m.fixed = test.start, int(test.start/answerRow)
			var read time.Duration
			m.submitOf("hog", 1, prompt(15_000, 0), 10)
			if test.own {
				m.submitOf("hog", 2, prompt(1, 200_000), 100_000)
			}
			for i := range test.strangers {
				m.submitOf(fmt.Sprint("stranger", i), ID(10+i), prompt(1, int32(300_000+i*10)), 100_000)
			}
			m.going(50, 0)
			from := m.now
			for m.now < from+6*time.Second {
				for m.serveKV() || m.plan() {
				}
				for _, p := range m.flying[0].parts {
					if p.Seq.ID == 1 {
						read += costs(p.Seq, p)
					}
				}
				m.back()
			}
			share := float64(read) / float64(m.now-from)
			t.Logf("%.3f of the time, want %.3f", share, test.want)
			require.InDelta(t, test.want, share, 0.02)
		})
	}
}

// TestPromptsWait: what steps have beside an answer of 1 ms, where rows of another client's prompt take 3.
func TestPromptsWait(t *testing.T) {
	row := func(_ *Seq, p Part) time.Duration {
		if p.Answers() {
			return time.Millisecond
		}
		return 3 * time.Millisecond
	}
	tests := []struct {
		name   string
		limits Limits
		flight int
		want   []string // “…” is a step that comes back
	}{
		{"until the answer has had as much", beside, 1,
			[]string{"2 1+1*, 1 0+1", "…", "2 2+1*", "…", "2 3+1*", "…", "2 4+1*, 1 1+1", "…", "2 5+1*", "…", "2 6+1*", "…"}},
		{"while one is in flight", Limits{Seqs: 8, Rows: 64, Wanted: 16, Beside: 32, Draws: true}, 2,
			[]string{"2 1+1*, 1 0+1", "2 2+1@0*", "…", "2 3+1@0*", "…", "2 4+1@0*", "…", "2 5+1@0*, 1 1+1", "…"}},
		{"in steps of their own, too", Limits{Seqs: 8, Rows: 64, Wanted: 16, Beside: 32, Apart: true}, 1,
			[]string{"2 1+1*", "…", "read 1 0+2", "…", "2 2+1*", "…", "2 3+1*", "…", "read 1 2+2", "…", "2 4+1*", "…"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newSimOf(t, test.limits, test.flight, kv.Class{Blocks: 64})
			m.submitOf("stranger", 2, prompt(1, 500), 100)
			m.steps(1)
			m.cost = row
			m.submitOf("hog", 1, prompt(100, 0), 1)
			m.script(test.want)
		})
	}
}

// TestBesideWhoWaits: a prompt that is read before another one that waits is read in steps of several clients; and of
// a client whose prompts wait, a quarter of what its answers may have is left for these.
func TestBesideWhoWaits(t *testing.T) {
	m := newTimed(t, beside, 1)
	m.alone = 64
	m.submitOf("hog", 1, prompt(1000, 0), 10)
	for m.serveKV() || m.plan() {
	}
	require.Equal(t, "1 0+64", m.describe())
	m.submitOf("stranger", 2, prompt(100, 5000), 10)
	for m.serveKV() {
	}
	m.back()
	m.plan()
	require.Equal(t, "2 0+16", m.describe())

	m = newTimed(t, beside, 1)
	m.fixed = 6
	for id := ID(1); id <= 6; id++ {
		m.submitOf("hog", id, prompt(1, int32(id)*100), 100)
	}
	m.steps(1)
	m.submitOf("stranger", 11, prompt(1, 900), 100)
	m.steps(1)
	m.submitOf("hog", 7, prompt(300, 1000), 1)
	m.steps(2)
	require.Equal(t, "11 2+1*, 6 2+1*, 1 3+1*, 2 3+1*, 3 3+1*, 4 3+1*", m.describe())
}

// TestTimeIsNotSaved: a client that came late, or did not read what it got, does not get what others had meanwhile.
func TestTimeIsNotSaved(t *testing.T) {
	m := newTimed(t, beside, 1)
	late := m.submitOf("stranger", 2, prompt(1, 500_000), 10_000)
	m.unread = late
	m.going(Window+5, 0)
	q := m.submitOf("hog", 1, prompt(15_000, 0), 1)
	m.going(200, 0)
	require.Greater(t, m.now, 30*time.Second)
	m.unread = nil
	m.state.Consumed(late, late.Sent())
	other := m.submitOf("other", 3, prompt(1, 600_000), 10_000)
	from, done := m.now, q.Done()
	for q.Done() == done {
		m.going(1, 0)
		require.Less(t, m.now-from, 3*time.Second, "with three clients, each step of 320 ms is for one of them")
	}
	require.Positive(t, other.Sent())
}

// TestLostStepsAreNotOwed: prompts that were in flight when the cache was lost do not count as unpaid for ever.
func TestLostStepsAreNotOwed(t *testing.T) {
	m := newTimed(t, beside, 1)
	m.submitOf("stranger", 2, prompt(1, 500), 5000)
	m.steps(1)
	q := m.submitOf("hog", 1, prompt(1000, 0), 1)
	for m.serveKV() || m.plan() {
	}
	require.Equal(t, "2 1+1*, 1 0+1", m.describe())
	m.reset()
	m.going(5, 0)
	done := q.Done()
	m.going(1500, 0)
	require.Greater(t, q.Done(), done+8)
}

// TestDebtsOutlastRequests: a client that asks for one prompt after another, each of which ends at once, has no more of
// the time than one that asks for all of them together. Nothing is remembered once nobody else is there.
func TestDebtsOutlastRequests(t *testing.T) {
	m := newTimed(t, beside, 1)
	m.submitOf("stranger", 1, prompt(1, 0), 100_000)
	m.going(5, 0)
	var read time.Duration
	from, id := m.now, ID(1)
	for m.now < from+5*time.Second {
		if len(m.state.Seqs()) == 1 {
			id++
			m.submitOf("hog", id, prompt(3, int32(id)*100), 1)
		}
		for m.serveKV() || m.plan() {
		}
		for _, p := range m.flying[0].parts {
			if p.Seq.ID > 1 {
				read += costs(p.Seq, p)
			}
		}
		m.back()
	}
	require.InDelta(t, 0.5, float64(read)/float64(m.now-from), 0.02)
	require.Len(t, m.state.clients, 2, "it owes time")
	m.state.Cancel(1)
	m.state.Cancel(id)
	m.run()
	require.Empty(t, m.state.clients)
}

// TestPromptsShareSteps: where most of a step's time is for no row, short prompts of several clients share steps as
// they do where nobody knows the time.
func TestPromptsShareSteps(t *testing.T) {
	steps := func(timed bool) (n int) {
		m := newTimed(t, beside, 1)
		m.start, m.fixed, m.rows = 100*nearRow, 100, 256
		if m.cost = nil; timed {
			m.cost = func(_ *Seq, p Part) time.Duration { return time.Duration(p.Rows) * nearRow }
		}
		for i := range 20 {
			for client := range 6 {
				m.submitOf(fmt.Sprint("c", client), ID(1+6*i+client), prompt(10+5*client, int32(1000*(6*i+client))), 1)
			}
		}
		n, _ = m.going(10_000, 0)
		return n
	}
	unknown, known := steps(false), steps(true)
	t.Log(known, "steps, where the time is not known", unknown)
	require.LessOrEqual(t, known, unknown*5/4)
}

// TestEverybodyGetsOn: whatever clients ask for, whatever rows cost, and on devices of all kinds, there is a step
// while any sequence is ready (sim.plan looks), all end, and each has the tokens that it has alone.
func TestEverybodyGetsOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Seqs: rapid.IntRange(1, 6).Draw(t, "seqs"), Rows: 64, Wanted: 64}
		l.Beside = rapid.IntRange(6, 64).Draw(t, "beside")
		kind := rapid.SampledFrom([]string{"", "draws", "apart", "whole"}).Draw(t, "kind")
		l.Draws, l.Apart, l.Whole = kind == "draws", kind == "apart", kind == "whole"
		m := newSimOf(t, l, rapid.IntRange(1, 3).Draw(t, "flight"), kv.Class{Blocks: rapid.IntRange(4, 40).Draw(t, "blocks")})
		m.rows, m.fixed = rapid.IntRange(1, 64).Draw(t, "rows"), rapid.IntRange(0, 30).Draw(t, "fixed")
		dear := rapid.SliceOfN(rapid.IntRange(0, 50_000), 4, 4).Draw(t, "a client's rows, µs")
		m.cost = func(q *Seq, p Part) time.Duration {
			return time.Duration(p.Rows*dear[q.Client[0]-'a']) * time.Microsecond
		}
		prompts := map[ID][]int32{}
		for id := ID(1); id <= 12; id++ {
			m.going(rapid.IntRange(0, 6).Draw(t, "steps"), 0)
			p := prompt(rapid.IntRange(1, 60).Draw(t, "prompt"), int32(id)*1000)
			q := m.submitOf(string(rune('a'+rapid.IntRange(0, 3).Draw(t, "client"))), id, p, 12)
			if q.Score = l.Whole; !l.Whole {
				prompts[id] = p
			}
		}
		m.run()
		for id, p := range prompts {
			if l.Apart {
				require.Equal(t, expectedApart(p, 12), m.got[id])
			} else {
				require.Equal(t, expected(p, 12), m.got[id])
			}
		}
		require.Zero(t, m.state.Len())
		require.Empty(t, m.state.clients)
	})
}
