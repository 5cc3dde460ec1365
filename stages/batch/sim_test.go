package batch

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/kv"
)

// sim drives a State the way the scheduler does, with a real block cache and a “model” whose next token is a hash
// of all tokens before it: a sequence that was given a wrong history shows it.
type sim struct {
	t      require.TestingT
	state  *State
	cache  *kv.Cache
	step   backend.Step
	parts  []Part
	got    map[ID][]int32
	ended  map[ID]End
	failed map[ID]bool
	unread *Seq // whose client does not read
	rows   int  // of a step of several sequences
	alone  int  // and of one
	max    int  // most rows seen in a step
}

func newSim(t require.TestingT, l Limits, blocks int) *sim {
	return &sim{t: t, state: New(l), cache: kv.New(blocks), got: map[ID][]int32{}, ended: map[ID]End{},
		failed: map[ID]bool{}, rows: l.Rows, alone: l.Rows}
}

func next(history []int32) int32 {
	h := uint32(2166136261)
	for _, id := range history {
		h = (h ^ uint32(id)) * 16777619
	}
	return int32(h % 1000)
}

func (m *sim) submit(id ID, prompt []int32, most int) *Seq {
	q := &Seq{ID: id, Tokens: append([]int32{}, prompt...), MaxLen: len(prompt) + most}
	q.Owner = q
	m.state.Submit(q)
	return q
}

// serveKV answers every request that the state wants made. It reports whether there was any.
func (m *sim) serveKV() bool {
	any := false
	for _, q := range append([]*Seq{}, m.state.Seqs()...) {
		op, n := m.state.NextKV(q)
		if op == KVNone {
			continue
		}
		any = true
		again, _ := m.state.NextKV(q)
		require.Equal(m.t, KVNone, again, "two requests of one sequence under way")
		m.answer(q, op, n)
	}
	return any
}

func (m *sim) answer(q *Seq, op KVOp, n int) {
	id, blocks, full := kv.Seq(q.ID), []int32{}, false
	grow := func(n int) {
		if n <= 0 {
			return
		}
		more, err := m.cache.Grow(id, n)
		full = err != nil
		for _, b := range more {
			blocks = append(blocks, int32(b))
		}
	}
	switch op {
	case KVOpen:
		shared, cached, err := m.cache.Open(id, q.Tokens)
		require.NoError(m.t, err)
		for _, b := range shared {
			blocks = append(blocks, int32(b))
		}
		grow(n - len(shared))
		if n = cached; full {
			require.NoError(m.t, m.cache.Close(id))
		}
	case KVGrow:
		grow(n)
	case KVPublish:
		require.NoError(m.t, m.cache.Publish(id, q.Tokens[:n]))
	case KVClose:
		require.NoError(m.t, m.cache.Close(id))
	}
	if full {
		m.state.KVRefused(q)
		return
	}
	m.state.KVDone(q, op, blocks, n)
}

// plan forms a step and checks what every step must keep.
func (m *sim) plan() bool {
	var hopeless *Seq
	m.parts, hopeless = m.state.Plan(&m.step, m.parts, Budget{m.rows, m.alone})
	if hopeless != nil {
		m.failed[hopeless.ID] = true
		m.state.Finish(hopeless)
		return true
	}
	rows, wanted := 0, 0
	seen := map[*Seq]bool{}
	for i, p := range m.parts {
		span := m.step.Spans[i]
		require.False(m.t, seen[p.Seq])
		seen[p.Seq] = true
		require.Equal(m.t, rows, span.Row)
		require.Equal(m.t, p.Rows, span.Rows)
		require.Equal(m.t, p.Seq.Done(), span.Pos)
		require.GreaterOrEqual(m.t, len(span.Table)*backend.BlockSize, span.Pos+span.Rows)
		require.Equal(m.t, p.Seq.Tokens[span.Pos:span.Pos+span.Rows], m.step.Tokens[rows:rows+span.Rows])
		rows += p.Rows
		wanted += p.Wanted
	}
	require.Len(m.t, m.step.Wanted, wanted)
	require.LessOrEqual(m.t, rows, m.state.limits.Rows)
	m.max = max(m.max, rows)
	return len(m.parts) > 0
}

// finish completes the planned step: each wanted row yields a token, which the client takes at once.
func (m *sim) finish() {
	for _, p := range m.parts {
		m.state.Advance(p)
		if p.Wanted == 0 || !m.state.Live(p.Seq) {
			continue
		}
		if p.Seq.Score {
			m.state.Scored(p.Seq)
			if p.Seq != m.unread {
				m.state.Consumed(p.Seq, p.Seq.Sent())
			}
			continue
		}
		id := next(p.Seq.Tokens)
		m.got[p.Seq.ID] = append(m.got[p.Seq.ID], id)
		if end := m.state.Append(p.Seq, id); end != NotEnded {
			m.ended[p.Seq.ID] = end
		}
		if p.Seq != m.unread {
			m.state.Consumed(p.Seq, p.Seq.Sent())
		}
	}
}

// run goes on until nothing is left to do.
func (m *sim) run() {
	for range 100_000 {
		busy := m.serveKV()
		if m.plan() {
			busy = true
			m.finish()
		}
		if !busy && !m.serveKV() { // planning may have preempted a sequence
			return
		}
	}
	require.FailNow(m.t, "the scheduler does not come to rest")
}

// describe prints a step for the text tests.
func (m *sim) describe() string {
	var b strings.Builder
	for i, p := range m.parts {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %d+%d", p.Seq.ID, m.step.Spans[i].Pos, p.Rows)
		if p.Wanted > 0 {
			b.WriteString("*")
		}
	}
	if len(m.parts) == 0 {
		return "idle"
	}
	return b.String()
}
