package batch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/kv"
)

// drawing is usual on a device that draws.
var drawing = Limits{Seqs: 8, Rows: 128, Wanted: 16, Beside: 32, Draws: true}

// What is planned with three steps in flight, before the first comes back, and then after each one that does. “@i” is
// what draw i of the step before gives.
func TestPlanInFlight(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		setup  func(*sim)
		want   []string // "…" is a step that comes back
	}{
		{"drawn by the device", drawing, func(m *sim) { m.submit(1, prompt(3, 0), 6) },
			[]string{"1 0+3*", "1 3+1@0*", "1 4+1@0*", "…", "1 5+1@0*", "…", "1 6+1@0*", "…", "1 7+1@0*", "…", "idle"}},
		{"sampled by the host", usual, func(m *sim) { m.submit(1, prompt(3, 0), 3) },
			[]string{"1 0+3*", "idle", "…", "1 3+1*", "idle", "…", "1 4+1*", "…", "idle"}},
		{"a prompt follows itself, and then its token", drawing, func(m *sim) { m.submit(1, prompt(300, 0), 2) },
			[]string{"1 0+128", "1 128+128", "1 256+44*", "…", "1 300+1@0*", "…", "idle"}},
		{"prompts in flight, sampled by the host", usual, func(m *sim) { m.submit(1, prompt(300, 0), 2) },
			[]string{"1 0+128", "1 128+128", "1 256+44*", "…", "idle", "…", "idle", "…", "1 300+1*", "…", "idle"}},
		{"each goes on from its own draw", drawing, func(m *sim) {
			m.submit(1, prompt(3, 0), 3)
			m.submit(2, prompt(4, 50), 3)
			m.submit(3, prompt(5, 90), 3).Host = true
			m.submit(4, prompt(6, 120), 3)
		}, []string{"1 0+3*, 2 0+4*, 3 0+5*, 4 0+6*", "1 3+1@0*, 2 4+1@1*, 4 6+1@3*", "1 4+1@0*, 2 5+1@1*, 4 7+1@2*",
			"…", "3 5+1*", "…", "idle", "…", "idle", "…", "3 6+1*", "…", "idle"}},
		{"a prompt beside those that wait for their tokens is short", usual, func(m *sim) {
			m.submit(1, prompt(3, 0), 2)
			m.submit(2, prompt(250, 50), 1)
		}, []string{"1 0+3*, 2 0+125", "2 125+32", "2 157+32", "…", "1 3+1*, 2 189+32", "…", "2 221+29*", "…", "idle"}},
		{"a score has one chunk under way", drawing, func(m *sim) { m.submit(1, prompt(40, 0), 0).Score = true },
			[]string{"1 0+16*", "idle", "…", "1 16+16*", "…", "1 32+8*", "…", "idle"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newSimOf(t, test.limits, 3, kv.Class{Blocks: 64})
			test.setup(m)
			m.script(test.want)
		})
	}
}

// A token that is on its way is known to the next step only: who misses that waits for its id.
func TestADrawIsForTheNextStep(t *testing.T) {
	m := newSimOf(t, drawing, 3, kv.Class{Blocks: 64})
	m.submit(1, prompt(3, 0), 3)
	m.serveKV()
	require.True(t, m.plan())
	other := m.submit(2, prompt(3, 50), 3)
	m.state.move(m.state.byID[1], waiting) // it has no place just now
	m.serveKV()
	require.True(t, m.plan())
	require.Equal(t, "2 0+3*", m.describe())
	m.state.move(m.state.byID[1], running)
	require.True(t, m.plan())
	require.Equal(t, "2 3+1@0*", m.describe())
	m.back()
	m.state.Cancel(other.ID)
	require.True(t, m.plan())
	require.Equal(t, "1 3+1*", m.describe())
}

// A sequence that ends with rows in flight keeps its blocks until they are back, and what they give it is dropped.
func TestEndsInFlight(t *testing.T) {
	ends := map[string]func(*sim, *Seq){
		"cancelled": func(m *sim, q *Seq) { m.state.Cancel(q.ID) },
		"given up":  func(m *sim, q *Seq) { m.state.Finish(q) },
		"stopped":   func(m *sim, q *Seq) { q.Ends = func(int32) bool { return true } },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			m := newSimOf(t, drawing, 3, kv.Class{Blocks: 64})
			q := m.submit(1, prompt(62, 0), 100)
			m.submit(2, prompt(5, 50), 20)
			m.serveKV()
			for range 3 {
				require.True(t, m.plan())
			}
			end(m, q)
			m.back()
			require.False(t, m.state.Live(q))
			tokens := len(q.Tokens)
			for range 2 {
				m.serveKV()
				require.NotNil(t, m.cache.Tables(1), "rows are in flight")
				m.back()
			}
			require.Equal(t, 64, q.Done(), "its rows came back")
			require.Len(t, q.Tokens, tokens)
			require.Equal(t, 2, m.state.Len())
			m.serveKV() // what is computed becomes shareable,
			m.serveKV() // then it is closed
			require.Nil(t, m.cache.Tables(1))
			require.Equal(t, 1, m.state.Len())
			m.run()
			require.Equal(t, expected(prompt(5, 50), 20), m.got[2])
		})
	}
}

// One failure strikes all steps in flight, each sequence once; then suspects run alone, and may follow themselves.
func TestStrikeInFlight(t *testing.T) {
	m := newSimOf(t, drawing, 3, kv.Class{Blocks: 64})
	a, b := m.submit(1, prompt(4, 0), 6), m.submit(2, prompt(4, 50), 6)
	for m.serveKV() {
	}
	for range 3 {
		require.True(t, m.plan())
	}
	require.Nil(t, m.strike(), "which one it was is not known yet")
	require.Equal(t, 1, a.strikes)
	require.Equal(t, 6, a.failed)
	m.submit(3, prompt(4, 90), 6)
	for m.serveKV() {
	}
	for _, want := range []string{"1 0+4*", "1 4+1@0*", "1 5+1@0*"} {
		require.True(t, m.plan())
		require.Equal(t, want, m.describe())
	}
	m.back()
	m.back()
	require.Equal(t, 1, a.strikes, "it is innocent not before it has passed where it failed")
	m.back()
	require.Zero(t, a.strikes)
	require.True(t, m.plan())
	require.Equal(t, "2 0+4*", m.describe())
	require.True(t, m.plan())
	require.Same(t, b, m.strike(), "it was alone")
	m.state.Finish(b)
	m.run()
	require.Equal(t, expected(prompt(4, 0), 6), m.got[1])
	require.Equal(t, expected(prompt(4, 90), 6), m.got[3])
}

// A suspect waits until those in flight are back.
func TestASuspectWaitsForOthers(t *testing.T) {
	m := newSimOf(t, drawing, 3, kv.Class{Blocks: 64})
	a := m.submit(1, prompt(4, 0), 6)
	m.submit(2, prompt(4, 50), 6)
	for m.serveKV() {
	}
	require.True(t, m.plan())
	a.strikes, a.failed = 1, 100
	require.False(t, m.plan())
	m.back()
	require.True(t, m.plan())
	require.Equal(t, "1 4+1*", m.describe())
}

// What waits for its token, and is suspected, keeps others out.
func TestASuspectThatWaitsKeepsOthersOut(t *testing.T) {
	m := newSimOf(t, usual, 3, kv.Class{Blocks: 64})
	a := m.submit(1, prompt(4, 0), 6)
	for m.serveKV() {
	}
	a.strikes, a.failed = 1, 100
	require.True(t, m.plan())
	m.submit(2, prompt(4, 50), 6)
	for m.serveKV() {
	}
	require.False(t, m.plan())
}

// A window's blocks come one step ahead: it makes no step shorter, and none wait.
func TestWindowsDoNotShortenSteps(t *testing.T) {
	window := kv.Class{Window: 100}
	window.Blocks = window.Least(4 * usual.Rows)
	m := newSimOf(t, usual, 3, window, kv.Class{Blocks: 64})
	m.submit(1, prompt(1000, 0), 2)
	var got []string
	for m.serveKV(); len(got) < 8; {
		require.True(t, m.plan())
		got = append(got, m.describe())
		if len(m.flying) == 3 {
			m.back()
		}
		for m.serveKV() {
		}
	}
	require.Equal(t, []string{"1 0+128", "1 128+128", "1 256+128", "1 384+128", "1 512+128", "1 640+128", "1 768+128",
		"1 896+104*"}, got)
}

// Who waits for blocks of a window gets those that another gives back, not only those of one that ends.
func TestBlocksOfAWindowGoRound(t *testing.T) {
	m := newSimOf(t, usual, 1, kv.Class{Blocks: 6, Window: 130}, kv.Class{Blocks: 64})
	a := m.submit(1, prompt(600, 0), 60)
	for a.Done() < 256 {
		for m.serveKV() {
		}
		require.True(t, m.plan())
		m.finish()
	}
	for m.serveKV() {
	}
	b := m.submit(2, prompt(200, 700), 4)
	m.serveKV()
	require.True(t, b.kv.refused)
	for range 5 {
		for m.serveKV() {
		}
		require.True(t, m.plan())
		m.finish()
	}
	require.Positive(t, b.Done(), "it got in when the first had passed what it held")
}

// What a step that failed goes on from is kept by every class, also by one whose window is shorter than the way back.
func TestStrikeBehindAWindow(t *testing.T) {
	l := usual
	l.Rows, l.Redo = 94, backend.BlockSize
	states := kv.Class{Blocks: 8, Window: backend.Window(ir.Class{State: true})}
	m := newSimOf(t, l, 1, states, kv.Class{Blocks: 8, Window: 2}, kv.Class{Blocks: 8})
	m.submit(1, prompt(150, 0), 4)
	m.serveKV()
	require.True(t, m.plan())
	m.back()
	m.serveKV() // what is before the window is given back
	require.True(t, m.plan())
	require.Nil(t, m.strike())
	require.True(t, m.plan())
	require.Equal(t, "1 64+64", m.describe())
	require.NotPanics(t, m.checkBlocks)
	m.run()
	require.Equal(t, expected(prompt(150, 0), 4), m.got[1])
}

// A step that was given up because all its sequences ended is back, like any other.
func TestDrop(t *testing.T) {
	m := newSim(t, usual, 8)
	q := m.submit(1, prompt(200, 0), 4)
	m.serveKV()
	require.True(t, m.plan())
	m.state.Cancel(q.ID)
	m.serveKV()
	require.NotNil(t, m.cache.Tables(1))
	m.flying = nil
	m.state.Drop(m.parts)
	m.serveKV()
	require.Zero(t, m.state.Len())
	require.Zero(t, m.state.flying)
}

// The tables of a step that runs stay as they are, whatever happens to its sequences: they grow, give blocks back, are
// closed, or begin again after a reset.
func TestATableThatIsReadIsNotReused(t *testing.T) {
	l := Limits{Seqs: 8, Rows: 64, Wanted: 16, Beside: 32}
	classes := []kv.Class{{Blocks: 10, Window: 65}, {Blocks: 12}}
	events := map[string]func(*sim, *Seq){
		"reset": func(m *sim, _ *Seq) { m.reset() },
		"step": func(m *sim, _ *Seq) { // those after it
			m.flight = 3
			for m.serveKV() || m.plan() {
			}
			m.back()
		},
		"close": func(m *sim, q *Seq) {
			m.flying = nil
			m.state.Drop(m.parts)
			m.state.move(q, waiting)
			m.serveKV()
		},
	}
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			m := newSimOf(t, l, 1, classes...)
			q := m.submit(1, prompt(400, 0), 4)
			for range 3 { // let it be somewhere
				for m.serveKV() {
				}
				m.plan()
				m.back()
			}
			for m.serveKV() {
			}
			require.True(t, m.plan())
			held := m.flying[0].step.Spans[0].Tables
			want := cloneTables(held)
			require.Positive(t, want[0].First)
			event(m, q)
			m.cache = kv.New(append([]kv.Class{}, classes...)...)
			m.state.Reset()
			m.flying, m.asked = nil, nil
			_, err := m.cache.Open(99, 0, nil) // somebody takes the first blocks
			require.NoError(t, err)
			require.NoError(t, m.cache.Grow(99, 64, 64))
			for m.serveKV() {
			}
			var next backend.Step
			m.state.Plan(&next, nil, Budget{Rows: 64, Alone: 64})
			require.NotEqual(t, want, next.Spans[0].Tables)
			require.Equal(t, want, held)
		})
	}
}

func cloneTables(tables []backend.Table) (out []backend.Table) {
	for _, t := range tables {
		out = append(out, backend.Table{First: t.First, Blocks: slices.Clone(t.Blocks)})
	}
	return out
}

// script is what happens in a history: who comes with what, who is cancelled, what fails, and when.
type script struct {
	limits  Limits
	classes []kv.Class
	fixed   int
	clients map[ID]string
	prompts map[ID][]int32
	most    map[ID]int
	host    map[ID]bool
	stops   map[ID]bool // it ends at a token of its own
	bound   map[ID]bool // a form says which of its tokens may follow
	right   map[ID]int  // of ten tokens that are proposed for it; 0: none is proposed
	events  []event
}

type event struct {
	kind string
	id   ID
	n    int
}

func drawScript(t *rapid.T) *script {
	l := Limits{Seqs: rapid.IntRange(1, 5).Draw(t, "seqs"), Rows: rapid.IntRange(8, 96).Draw(t, "rows"), Wanted: 8}
	l.Beside, l.Draws = rapid.IntRange(6, l.Rows).Draw(t, "beside"), rapid.Bool().Draw(t, "draws")
	l.Proposed = rapid.IntRange(0, 8).Draw(t, "proposed")
	s := &script{limits: l, fixed: rapid.IntRange(0, 8).Draw(t, "fixed"), clients: map[ID]string{},
		prompts: map[ID][]int32{}, most: map[ID]int{}, host: map[ID]bool{}, stops: map[ID]bool{}, bound: map[ID]bool{},
		right: map[ID]int{}}
	for range rapid.IntRange(0, 2).Draw(t, "windows") {
		class := kv.Class{Window: rapid.SampledFrom([]int{2, 30, 64, 65, 130}).Draw(t, "window")}
		class.Blocks = class.Least(4*l.Rows) + rapid.IntRange(0, 6).Draw(t, "more")
		s.classes = append(s.classes, class)
		if isState(class) {
			s.limits.Redo = backend.BlockSize
		}
	}
	s.classes = append(s.classes, kv.Class{Blocks: rapid.IntRange(6, 24).Draw(t, "blocks")})
	kinds := strings.Fields("submit submit submit cancel reset strike plan plan back ask answer plan back ask answer ask answer " +
		"mask find mask find")
	for range rapid.IntRange(20, 120).Draw(t, "events") {
		e := event{kind: rapid.SampledFrom(kinds).Draw(t, "event"), n: rapid.IntRange(0, 9).Draw(t, "n")}
		if e.kind == "submit" {
			e.id = ID(len(s.prompts) + 1)
			s.prompts[e.id] = prompt(rapid.IntRange(1, 250).Draw(t, "len"), int32(rapid.IntRange(0, 3).Draw(t, "salt")))
			s.clients[e.id] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "client")
			s.most[e.id] = rapid.IntRange(1, 70).Draw(t, "most")
			s.bound[e.id] = rapid.IntRange(0, 2).Draw(t, "bound") == 0
			if !s.bound[e.id] {
				s.right[e.id] = rapid.SampledFrom([]int{0, 5, 7, 9}).Draw(t, "right")
			}
			s.host[e.id], s.stops[e.id] = rapid.Bool().Draw(t, "host"), rapid.Bool().Draw(t, "stops")
		}
		s.events = append(s.events, e)
	}
	return s
}

// play runs a script with so many steps in flight, and returns what each sequence got. Tokens are proposed by
// the answers that are expected; nil: none are.
func (s *script) play(t *rapid.T, flight int, expected answers) (m *sim, cancelled map[ID]bool) {
	m, cancelled = newSimOf(t, s.limits, flight, s.classes...), map[ID]bool{}
	m.fixed = s.fixed
	submitted := ID(0)
	for _, e := range s.events {
		switch e.kind {
		case "submit":
			submitted = e.id
			q := m.submitOf(s.clients[e.id], e.id, s.prompts[e.id], s.most[e.id])
			q.Host = s.host[e.id] || s.bound[e.id]
			if right := s.right[e.id]; right > 0 && expected != nil {
				p := s.prompts[e.id]
				q.Proposer = newGuesser(append(slices.Clone(p), expected(p, s.most[e.id])...), right)
			}
			if m.bound[e.id] = s.bound[e.id]; m.bound[e.id] {
				m.state.Hold(q)
			}
			if s.stops[e.id] {
				q.Ends = func(token int32) bool { return token%16 == 3 }
			}
		case "cancel":
			if id := submitted - ID(e.n); id <= submitted && id > 0 {
				cancelled[id] = true
				m.state.Cancel(id)
			}
		case "reset":
			m.reset()
		case "strike":
			m.fail(e.n%2 == 0)
		case "plan":
			m.plan()
		case "back":
			if len(m.flying) > 0 {
				m.back()
			}
		case "mask":
			m.askMask()
		case "find":
			m.findMask()
		case "ask":
			m.askKV()
		case "answer":
			m.answerKV(min(e.n, len(m.asked)))
		}
	}
	m.run()
	return m, cancelled
}

// fail strikes what is in flight, after it ran or not. Nobody is at fault, so nobody may be given up: a sequence that
// would be is forgiven instead.
func (m *sim) fail(ran bool) {
	if len(m.flying) == 0 {
		return
	}
	if ran {
		m.device.run(m.flying[0], m.flying)
	}
	if q := m.strike(); q != nil {
		q.strikes, q.failed = 0, 0
	}
}

// However many steps are in flight, who draws, whatever is proposed, arrives, leaves, fails and is recomputed
// meanwhile: each sequence gets the tokens that it gets with one step in flight and nothing proposed, and everything
// comes back.
func TestFlightsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { drawScript(t).agrees(t, expected) })
}

// agrees plays a script with up to three steps in flight: what each sequence gets is as expected.
func (s *script) agrees(t *rapid.T, expected answers) {
	one, _ := s.play(t, 1, nil)
	for flight := 1; flight <= 3; flight++ {
		m, cancelled := s.play(t, flight, expected)
		for id, p := range s.prompts {
			if cancelled[id] || one.failed[id] || m.failed[id] {
				continue
			}
			want := expected(p, s.most[id])
			if i := slices.IndexFunc(want, func(token int32) bool { return token%16 == 3 }); i >= 0 && s.stops[id] {
				want = want[:i+1]
			}
			require.Equal(t, want, m.got[id], "sequence %d, %d in flight", id, flight)
			require.Equal(t, one.got[id], m.got[id])
		}
		require.Equal(t, one.failed, m.failed, "who needs too many blocks")
		require.Zero(t, m.state.Len()+m.state.Running()+m.state.Waiting()+m.state.flying)
		require.Zero(t, m.cache.Stats().Used, fmt.Sprint(m.cache.Stats()))
	}
}
