package batch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/kv"
)

// answers gives the tokens that follow a prompt.
type answers func(prompt []int32, most int) []int32

// guesser proposes tokens of a text that it knows: of ten so many are right, and the others are any.
type guesser struct {
	text  []int32
	right int
	rand  *rand.Rand
	count int // 0: any number of tokens
}

func newGuesser(text []int32, right int) *guesser {
	return &guesser{text: text, right: right, rand: rand.New(rand.NewPCG(1, uint64(len(text))))}
}

func (*guesser) Ready([]int32) bool { return true }

func (g *guesser) Propose(tokens []int32, n int, out []int32) []int32 {
	if g.count > 0 {
		n = min(n, g.count)
	} else {
		n = g.rand.IntN(n + 1)
	}
	for i := range n {
		token := int32(g.rand.IntN(1000))
		if at := len(tokens) + i; at < len(g.text) && g.rand.IntN(10) < g.right {
			token = g.text[at]
		}
		out = append(out, token)
	}
	return out
}

// known submits a sequence for which so many tokens of its answer are proposed at a time.
func (m *sim) known(id ID, prompt []int32, most, count int) *Seq {
	q := m.submit(id, prompt, most)
	g := newGuesser(append(slices.Clone(prompt), expected(prompt, most)...), 10)
	g.count = count
	q.Proposer = g
	return q
}

// proposing is drawing, with four tokens proposed of a sequence in a step.
var proposing = Limits{Seqs: 8, Rows: 128, Wanted: 16, Beside: 32, Draws: true, Proposed: 4}

// As TestPlanInFlight, with three steps in flight. “(n)” are rows of proposed tokens, counted in “+”, “^n” those of
// accepted ones that are computed again; all are right.
func TestPlanProposed(t *testing.T) {
	states, all := kv.Class{Blocks: 64, Window: backend.Window(ir.Class{State: true})}, kv.Class{Blocks: 64}
	tests := []struct {
		name    string
		edit    func(*Limits)
		classes []kv.Class
		setup   func(*sim)
		want    []string
	}{
		{"all are accepted, and the last step has no more than may follow", nil, []kv.Class{all},
			func(m *sim) { m.known(1, prompt(3, 0), 9, 4) },
			[]string{"1 0+3*", "idle", "…", "1 3+5(4)*", "idle", "…", "1 8+3(2)*", "…", "idle"}},
		{"plain ones beside it wait with it", nil, []kv.Class{all}, func(m *sim) {
			m.known(1, prompt(3, 0), 20, 2)
			m.submit(2, prompt(4, 50), 4)
		}, []string{"1 0+3*, 2 0+4*", "idle", "…", "1 3+3(2)*, 2 4+1*", "idle", "…", "1 6+3(2)*, 2 5+1*"}},
		{"nothing is proposed beyond the logits that others may want", func(l *Limits) { l.Wanted = 4 }, []kv.Class{all},
			func(m *sim) {
				m.known(1, prompt(3, 0), 20, 4)
				m.submit(2, prompt(250, 50), 20).Host = true
			}, []string{"1 0+3*, 2 0+125", "idle", "…", "1 3+3(2)*, 2 125+32", "idle", "…", "1 6+3(2)*, 2 157+32"}},
		{"what was accepted is computed once more for states", func(l *Limits) { l.Redo = backend.BlockSize },
			[]kv.Class{states, all}, func(m *sim) { m.known(1, prompt(62, 0), 9, 4) },
			[]string{"1 0+62*", "…", "1 62+5(4)*", "…", "1 63+7(2)^4*", "…", "idle"}},
		{"a suspect has nothing proposed", nil, []kv.Class{all}, func(m *sim) { m.known(1, prompt(3, 0), 9, 4).strikes = 1 },
			[]string{"1 0+3*", "…", "1 3+5(4)*"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := proposing
			if test.edit != nil {
				test.edit(&l)
			}
			m := newSimOf(t, l, 3, test.classes...)
			test.setup(m)
			m.script(test.want)
			seqs := slices.Clone(m.state.Seqs())
			m.run()
			require.Equal(t, m.proposed, m.accepted)
			for _, q := range seqs {
				require.Equal(t, expected(q.Tokens[:q.Prompt], q.MaxLen-q.Prompt), q.Tokens[q.Prompt:])
			}
		})
	}
}

// An end among tokens that are accepted is the end: what follows it is nobody's, and is not shared.
func TestEndAmongAccepted(t *testing.T) {
	m := newSim(t, proposing, 64)
	answer := expected(prompt(60, 0), 20)
	q := m.known(1, prompt(60, 0), 20, 4)
	q.Ends = func(token int32) bool { return token == answer[2] }
	m.run()
	require.Equal(t, answer[:3], m.got[1])
	require.Equal(t, EndToken, m.ended[1])
	require.Equal(t, 4, m.accepted)
	require.Zero(t, m.state.Len())

	going := m.submit(2, append(prompt(60, 0), answer...), 4)
	m.serveKV()
	require.Zero(t, going.Done(), "63 positions are known")
}

// Rows of tokens that were not accepted are not shared, whatever block they lie in, and their positions have others.
func TestWhatIsNotAcceptedIsNotShared(t *testing.T) {
	m := newSim(t, proposing, 64)
	q := m.submit(1, prompt(62, 0), 20)
	g := newGuesser(nil, 0)
	g.count = 4
	q.Proposer = g
	for m.serveKV(); q.Done() < 64; m.serveKV() {
		require.Zero(t, q.kv.passed)
		require.True(t, m.plan())
		m.back()
	}
	require.Equal(t, 64, q.kv.passed)
	require.Len(t, q.Tokens, 65)
	require.Zero(t, m.accepted)
	m.run()
	require.Equal(t, expected(prompt(62, 0), 20), m.got[1])
}

// No more tokens are proposed than a client has credit for: it gets its window, and not one more.
func TestProposedTokensAreCredited(t *testing.T) {
	m := newSim(t, proposing, 64)
	q := m.known(1, prompt(4, 0), 100, 4)
	m.unread = q
	m.run()
	require.Len(t, m.got[1], Window)
	require.True(t, m.state.Starved(q))
	require.NotZero(t, m.accepted)
}

// Proposed tokens have what rows of a step no answer has.
func TestProposedRowsAreTheLast(t *testing.T) {
	m := newSim(t, proposing, 64)
	for id := ID(1); id <= 4; id++ {
		m.known(id, prompt(3, int32(id)*100), 20, 4)
	}
	for m.serveKV() {
	}
	m.plan()
	m.back()
	m.rows = 6
	m.plan()
	require.Equal(t, "1 3+3(2)*, 2 3+1*, 3 3+1*, 4 3+1*", m.describe())
}
