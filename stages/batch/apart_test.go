package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/stages/kv"
)

// apart is drawing on a device that computes prompts in a way of their own.
var apart = Limits{Seqs: 8, Rows: 128, Wanted: 16, Beside: 32, Draws: true, Apart: true}

// expectedApart is expected on a device that leaves other numbers of prompts than of answers.
func expectedApart(prompt []int32, most int) []int32 {
	all := []int32{}
	for _, id := range prompt {
		all = append(all, read(id))
	}
	for range most {
		all = append(all, next(all))
	}
	return all[len(prompt):]
}

// again submits a sequence that has generated some of its tokens before.
func (m *sim) again(id ID, prompted int, tokens []int32, most int) *Seq {
	q := &Seq{ID: id, Tokens: append([]int32{}, tokens...), Terms: &Terms{Prompt: prompted, MaxLen: len(tokens) + most}}
	q.Owner = q
	m.state.Submit(q)
	return q
}

// As TestPlanInFlight, with two steps in flight. Steps of prompts say “read”.
func TestPlanApart(t *testing.T) {
	tests := []struct {
		name  string
		setup func(*sim)
		want  []string
	}{
		{"a prompt, then its answer", func(m *sim) { m.submit(1, prompt(300, 0), 3) },
			[]string{"read 1 0+128", "read 1 128+128", "…", "read 1 256+44*", "…", "1 300+1@0*", "…", "1 301+1@0*", "…", "idle"}},
		{"a prompt of one token is one, too", func(m *sim) {
			m.submit(1, prompt(1, 0), 3)
			m.submit(2, prompt(1, 50), 2)
		}, []string{"read 1 0+1*, 2 0+1*", "1 1+1@0*, 2 1+1@1*", "…", "1 2+1@0*", "…", "idle"}},
		{"they take turns", func(m *sim) {
			m.submit(1, prompt(3, 0), 20)
			m.serveKV()
			m.plan()
			m.back()
			m.submit(2, prompt(90, 50), 2)
		}, []string{"1 3+1*", "…", "read 2 0+32", "1 4+1*", "…", "…", "read 2 32+32", "1 5+1*", "…", "read 2 64+26*", "…",
			"1 6+1*, 2 90+1@0*", "…", "1 7+1@0*"}},
		{"what was generated before is no prompt", func(m *sim) { m.again(1, 70, prompt(200, 0), 2) },
			[]string{"read 1 0+70", "1 70+128", "…", "1 198+2*", "…", "1 200+1@0*", "…", "…", "idle"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newSimOf(t, apart, 2, kv.Class{Blocks: 64})
			test.setup(m)
			m.script(test.want)
		})
	}
}

// What an answer left is found by the sequence that is computed again, not by a prompt that contains the answer.
func TestAnswersAreNoPrompts(t *testing.T) {
	m := newSimOf(t, apart, 1, kv.Class{Blocks: 64})
	p := prompt(100, 0)
	all := append(p, expectedApart(p, 100)...)
	m.submit(1, p, 101)
	m.run()
	for _, test := range []struct{ prompted, done int }{
		{len(all), 64}, // only the block that was all prompt
		{100, 192},     // all whole blocks
		{110, 64},      // another prompt, though of the same tokens
	} {
		q := m.again(ID(test.prompted), test.prompted, all, 1)
		m.serveKV()
		require.Equal(t, test.done, q.Done())
		m.run()
	}
	require.Equal(t, m.got[1][100:], m.got[100])
	require.Equal(t, expectedApart(all, 1), m.got[200])
}

// Whatever runs beside it, fails, gives way and is computed again, and whatever is cached: the same request has the
// same answer, also one that goes on from the answer of another.
func TestApartAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScript(t)
		s.limits.Apart = true
		for id := ID(2); int(id) <= len(s.prompts); id++ {
			if before := s.prompts[id-1]; len(before) < 250 && rapid.Bool().Draw(t, "goes on") {
				s.prompts[id] = append(append([]int32{}, before...), expectedApart(before, s.most[id-1])...)
			}
		}
		s.agrees(t, expectedApart)
	})
}
