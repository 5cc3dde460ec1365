package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/kv"
)

// holders lists who holds places, by arrival.
func (m *sim) holders() string {
	var all []string
	for _, q := range m.state.Seqs() {
		if q.phase == running {
			all = append(all, fmt.Sprintf("%s%d", q.Client, q.ID))
		}
	}
	return strings.Join(all, " ")
}

// steps completes so many.
func (m *sim) steps(n int) {
	for range n {
		for m.serveKV() {
		}
		m.plan()
		m.finish()
	}
	for m.serveKV() {
	}
}

// TestPlacesAreShared: each line asks for sequences, has some steps computed, and says who holds places then. Names are
// those of clients with the sequence's number.
func TestPlacesAreShared(t *testing.T) {
	type line struct {
		asks  string // CLIENT:first-last
		steps int
		want  string
	}
	tests := []struct {
		name  string
		seqs  int
		lines []line
	}{
		{"who holds all gives up one place at once, and as many as make it even while others wait for more", 4, []line{
			{"a:1-8", 1, "a1 a2 a3 a4"},
			{"b:11-11", 0, "a1 a2 a3 b11"},
			{"b:12-19", 1, "a1 a2 b11 b12"},
			{"", 20, "a1 a2 b11 b12"},
		}},
		{"places that come free go to whoever holds fewest, not to whoever came first", 4, []line{
			{"a:1-2 b:11-11", 1, "a1 a2 b11"},
			{"a:3-9", 0, "a1 a2 b11 a3"},
			{"b:12-12", 0, "a1 a2 b11 b12"},
			{"c:21-21", 0, "a1 b11 b12 c21"},
		}},
		{"where each holds one, those without take turns, but not before a turn is over", 2, []line{
			{"a:1-4 b:11-14", 1, "a1 b11"},
			{"c:21-21", leastStint / 2, "a1 b11"},
			{"", leastStint, "a1 c21"}, // b11 took the place of a1 for a moment
			{"", leastStint, "a1 c21"},
		}},
		{"an odd place stays where it is", 3, []line{
			{"a:1-4", 1, "a1 a2 a3"},
			{"b:11-14", 1, "a1 a2 b11"},
			{"", 10 * leastStint, "a1 a2 b11"},
		}},
		{"of one client, places stay with those that came first", 2, []line{
			{"a:1-9", 10 * leastStint, "a1 a2"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := usual
			l.Seqs = test.seqs
			m := newSim(t, l, 400)
			for _, line := range test.lines {
				for _, ask := range strings.Fields(line.asks) {
					var from, to ID
					client, ids, _ := strings.Cut(ask, ":")
					_, err := fmt.Sscanf(ids, "%d-%d", &from, &to)
					require.NoError(t, err)
					for id := from; id <= to; id++ {
						m.submitOf(client, id, prompt(3, int32(id)*10), 2000)
					}
				}
				m.steps(line.steps)
				require.Equal(t, line.want, m.holders(), "after %q and %d steps", line.asks, line.steps)
			}
		})
	}
}

// TestBlocksAreGivenUp: a client that has a place and waits for blocks, or that others hold all blocks from, gets them
// from the client that holds most places.
func TestBlocksAreGivenUp(t *testing.T) {
	l := usual
	l.Seqs = 6
	m := newSim(t, l, 10)
	for id := ID(1); id <= 5; id++ {
		m.submitOf("a", id, prompt(100, int32(id)*1000), 100) // two blocks each
	}
	m.steps(6)
	require.Equal(t, "a1 a2 a3 a4 a5", m.holders())
	m.submitOf("b", 11, prompt(200, 9000), 50) // four blocks
	m.steps(1)
	require.Equal(t, "a1 a2 a3 b11", m.holders())
	for n := 0; m.ended[11] == NotEnded; n++ {
		require.Less(t, n, 70)
		m.steps(1)
	}
	m.run()
	for id := ID(1); id <= 5; id++ {
		require.Equal(t, expected(prompt(100, int32(id)*1000), 100), m.got[id], "computed again")
	}
	require.Equal(t, expected(prompt(200, 9000), 50), m.got[11])
}

// TestRowsAreShared: what steps have when several clients share them. “fixed” is Budget.Fixed.
func TestRowsAreShared(t *testing.T) {
	hog := func(m *sim) {
		for id := ID(1); id <= 6; id++ {
			m.submitOf("a", id, prompt(1, int32(id)*100), 100)
		}
		m.steps(1)
	}
	tests := []struct {
		name  string
		fixed int
		setup func(*sim)
		want  []string
	}{
		{"a client alone has all of its rows", 0, hog, []string{"1 1+1*, 2 1+1*, 3 1+1*, 4 1+1*, 5 1+1*, 6 1+1*"}},
		{"row by row, where each costs its own", 0, func(m *sim) {
			hog(m)
			m.submitOf("b", 11, prompt(3, 900), 100)
		}, []string{"1 1+1*, 2 1+1*, 3 1+1*, 11 0+3*", "4 1+1*, 11 3+1*", "5 1+1*, 11 4+1*", "6 1+1*, 11 5+1*", "1 2+1*, 11 6+1*"}},
		{"more, where a step has its own cost", 2, func(m *sim) {
			hog(m)
			m.submitOf("b", 11, prompt(1, 900), 100)
			m.steps(1)
		}, []string{"11 1+1*, 4 1+1*, 5 1+1*, 6 1+1*", "11 2+1*, 1 2+1*, 2 2+1*, 3 2+1*"}},
		{"all, where more rows cost nothing", 100, func(m *sim) {
			hog(m)
			m.submitOf("b", 11, prompt(1, 900), 100)
			m.steps(1)
		}, []string{"11 1+1*, 1 2+1*, 2 2+1*, 3 2+1*, 4 2+1*, 5 2+1*, 6 2+1*"}},
		{"prompts take turns by what clients have had", 0, func(m *sim) {
			m.submitOf("a", 1, prompt(300, 1000), 1)
			m.submitOf("a", 2, prompt(300, 2000), 1)
			m.submitOf("b", 11, prompt(20, 3000), 1)
			m.submitOf("b", 12, prompt(150, 4000), 1)
		}, []string{"1 0+128", "11 0+20*, 1 128+108", "12 0+128", "1 236+44", "12 128+22*, 1 280+20*, 2 0+2"}},
		{"a prompt has as much beside another's answer", 3, func(m *sim) {
			m.submitOf("b", 11, prompt(1, 900), 100)
			m.steps(1)
			m.submitOf("a", 1, prompt(300, 1000), 1)
			m.submitOf("a", 2, prompt(300, 2000), 1)
		}, []string{"11 1+1*, 1 0+4", "11 2+1*, 1 4+4"}},
		{"a prompt has a quarter of what its client's answers would have", 6, func(m *sim) {
			hog(m)
			m.submitOf("b", 11, prompt(1, 900), 100)
			m.steps(1)
			m.submitOf("a", 7, prompt(300, 1000), 1)
			m.steps(1)
		}, []string{"11 2+1*, 6 2+1*, 1 3+1*, 2 3+1*, 3 3+1*, 4 3+1*, 7 2+2", "11 3+1*, 5 3+1*, 6 3+1*, 1 4+1*, 2 4+1*, 3 4+1*, 7 4+2"}},
		{"prompts beside a shorter one are no longer", 5, func(m *sim) {
			m.submitOf("a", 1, prompt(300, 1000), 1)
			m.submitOf("a", 2, prompt(300, 2000), 1)
			m.steps(1)
			m.submitOf("b", 11, prompt(20, 3000), 1)
		}, []string{"11 0+20*, 1 128+25", "1 153+128"}},
		{"of three, the two that want much share what is left", 2, func(m *sim) {
			for id := ID(1); id <= 4; id++ {
				m.submitOf("a", id, prompt(1, int32(id)*100), 100)
				m.submitOf("b", 10+id, prompt(1, int32(id)*1000), 100)
			}
			m.steps(1)
			m.submitOf("c", 21, prompt(1, 900), 100)
			m.steps(1)
		}, []string{"21 1+1*, 4 1+1*, 14 1+1*, 1 2+1*, 11 2+1*, 2 2+1*, 12 2+1*"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := usual
			l.Seqs = 10
			m := newSim(t, l, 64)
			m.fixed = test.fixed
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

// TestStrangers: beside a client that asks for all that it can, be it answers or prompts, with however many steps in
// flight and whoever draws, a stranger's answer takes few steps more than alone, and what is computed meanwhile costs
// twice as much at most.
func TestStrangers(t *testing.T) {
	hogs := []struct {
		name               string
		n, prompt, answers int
	}{{"answers", 128, 3, 16_000}, {"a prompt", 1, 16_000, 10}, {"prompts", 40, 4000, 10}, {"prompts and answers", 64, 200, 200}}
	for _, hog := range hogs {
		for _, fixed := range []int{0, 1, 3, 50} {
			for flight := 1; flight <= 3; flight++ {
				l := Limits{Seqs: 32, Rows: 512, Wanted: 64, Beside: 128, Draws: flight > 1}
				cost := func(hogs int) (steps, rows, before int) {
					m := newSimOf(t, l, flight, kv.Class{Blocks: 1000})
					m.fixed, m.rows, m.alone = fixed, 128, 512
					for id := ID(1); int(id) <= hogs; id++ {
						m.submitOf("hog", id, prompt(hog.prompt, int32(id)*10_000), hog.answers)
					}
					m.going(20, 0)
					for m.serveKV() || m.plan() {
					}
					for _, f := range m.flying {
						before += len(f.step.Tokens) + fixed
					}
					m.submitOf("stranger", 1000, prompt(20, 9000), 40)
					steps, rows = m.going(10_000, 1000)
					return steps, rows, before
				}
				alone, aloneRows, _ := cost(0)
				steps, rows, before := cost(hog.n)
				t.Logf("%s, fixed %d, %d in flight: alone %d steps of %d rows, beside others %d of %d", hog.name, fixed,
					flight, alone, aloneRows, steps, rows)
				require.LessOrEqual(t, steps, alone+1+flight)
				spare := (1 + flight) * (32 + fixed) // of one step that waits for a place, and those after it in flight
				require.LessOrEqual(t, rows+steps*fixed, 2*(aloneRows+alone*fixed)+before+spare)
			}
		}
	}
}

// going completes at most so many steps, or those until a sequence ends, and counts them and their rows.
func (m *sim) going(most int, until ID) (steps, rows int) {
	for steps < most && (until == 0 || m.ended[until] == NotEnded) {
		for m.serveKV() || m.plan() {
		}
		if len(m.flying) == 0 {
			return steps, rows
		}
		steps, rows = steps+1, rows+len(m.flying[0].step.Tokens)
		m.back()
	}
	return steps, rows
}

// TestClientsAreForgotten: nothing is left of a client whose sequences have gone, and one that comes back starts where
// the others are.
func TestClientsAreForgotten(t *testing.T) {
	m := newSim(t, usual, 64)
	m.submitOf("a", 1, prompt(100, 0), 20)
	m.submitOf("b", 2, prompt(3, 500), 3)
	m.run()
	require.Empty(t, m.state.clients)
	q := m.submitOf("b", 3, prompt(3, 900), 3)
	require.Equal(t, m.state.clock, q.client.had)
	m.run()
}
