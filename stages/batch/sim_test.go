package batch

import (
	"fmt"
	"strings"
	"time"

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
	device *simDevice
	flight int          // steps in flight, at most
	flying []*simStep   // in the order of their plans
	spare  []*simStep   // back, to be used again
	asked  []request    // of the KV owner, not answered
	bound  map[ID]bool  // after each token a mask is to be found
	masks  []*Seq       // asked for, not found
	step   backend.Step // the newest one
	parts  []Part
	got    map[ID][]int32
	ended  map[ID]End
	failed map[ID]bool
	unread *Seq // whose client does not read
	rows   int  // of a step of several sequences
	alone  int  // and of one
	fixed  int  // rows that a step costs beside its own
	max    int  // most rows seen in a step

	proposed, accepted int

	cost  func(*Seq, Part) time.Duration // of a part's rows; nil: the state is not told what steps took
	start time.Duration                  // what a step costs beside its rows
	now   time.Duration                  // all that the steps took which are back
}

func newSim(t require.TestingT, l Limits, blocks int) *sim {
	return newSimOf(t, l, 1, kv.Class{Blocks: blocks})
}

// newSimOf has so many steps in flight. The last class keeps all.
func newSimOf(t require.TestingT, l Limits, flight int, classes ...kv.Class) *sim {
	return &sim{t: t, state: New(l), cache: kv.New(classes...), device: newSimDevice(t, classes), flight: flight,
		bound: map[ID]bool{}, got: map[ID][]int32{}, ended: map[ID]End{}, failed: map[ID]bool{}, rows: l.Rows, alone: l.Rows}
}

func next(history []int32) int32 {
	h := uint32(emptyHistory)
	for _, id := range history {
		h = hashed(h, id)
	}
	return int32(h % 1000)
}

const emptyHistory = 2166136261

func hashed(h uint32, id int32) uint32 { return (h ^ uint32(id)) * 16777619 }

func (m *sim) submit(id ID, prompt []int32, most int) *Seq { return m.submitOf("", id, prompt, most) }

func (m *sim) submitOf(client string, id ID, prompt []int32, most int) *Seq {
	q := &Seq{ID: id, Tokens: append([]int32{}, prompt...),
		Terms: &Terms{Client: client, Prompt: len(prompt), MaxLen: len(prompt) + most}}
	q.Owner = q
	m.state.Submit(q)
	return q
}

// serveKV answers every request that the state wants made. It reports whether there was any.
func (m *sim) serveKV() bool {
	m.askKV()
	return m.answerKV(len(m.asked))
}

// askKV makes the requests that the state wants made.
func (m *sim) askKV() {
	m.state.Share()
	for _, q := range m.state.Seqs() {
		if r := m.state.NextKV(q); r.Op != KVNone {
			require.Equal(m.t, KVNone, m.state.NextKV(q).Op, "two requests of one sequence under way")
			m.asked = append(m.asked, request{q, r})
		}
	}
}

// answerKV answers the first n of the requests that were made. It reports whether there was any.
func (m *sim) answerKV(n int) bool {
	for _, r := range m.asked[:n] {
		m.answer(r.seq, r.KVRequest)
	}
	m.asked = m.asked[n:]
	m.checkBlocks()
	m.checkPlaces()
	return n > 0
}

// request is one under way to the KV owner.
type request struct {
	seq *Seq
	KVRequest
}

func (m *sim) answer(q *Seq, r KVRequest) {
	id, cached := kv.Seq(q.ID), 0
	var err error
	switch r.Op {
	case KVOpen:
		tokens := q.Text(len(q.Tokens))
		if q.Score {
			tokens = nil
		}
		cached, err = m.cache.Open(id, 0, tokens)
		require.NoError(m.t, err)
		if err = m.cache.Grow(id, r.End, cached+r.Soon); err != nil {
			require.NoError(m.t, m.cache.Close(id))
		}
	case KVGrow:
		err = m.cache.Grow(id, r.End, r.Soon)
	case KVPass:
		require.LessOrEqual(m.t, r.End, len(q.Tokens), "only what is known is shared")
		require.True(m.t, !q.Follows || r.End <= q.sure, "what may be taken back is shared")
		if !q.Score {
			require.NoError(m.t, m.cache.Publish(id, q.Text(r.End)))
		}
		_, passed := m.cache.Pass(id, r.End)
		require.NoError(m.t, passed)
	case KVClose:
		require.NoError(m.t, m.cache.Close(id))
	}
	if err != nil {
		require.ErrorIs(m.t, err, kv.ErrFull)
		m.state.KVRefused(q)
		return
	}
	m.state.KVDone(q, r, m.cache.Tables(id), cached)
}

// checkPlaces: no more are held than there are, and each client knows how many are its own.
func (m *sim) checkPlaces() {
	all := 0
	for _, c := range m.state.clients {
		held := 0
		for _, q := range c.seqs {
			if q.phase == running || q.phase == entering {
				held++
			}
		}
		require.Equal(m.t, held, c.held, c.name)
		all += held
	}
	require.LessOrEqual(m.t, all, m.state.limits.Seqs)
}

// checkBlocks: what steps in flight read or write is their sequences' own, also of those that ended meanwhile.
func (m *sim) checkBlocks() {
	for _, f := range m.flying {
		for i := range f.step.Spans {
			span := &f.step.Spans[i]
			tables := m.cache.Tables(kv.Seq(f.parts[i].Seq.ID))
			require.NotNil(m.t, tables, "the blocks of sequence %d were given back", f.parts[i].Seq.ID)
			for c, class := range m.device.classes {
				first := seen(class, span.Pos) / backend.BlockSize
				for b := first; b < backend.BlocksFor(span.Pos+span.Rows); b++ {
					if span.Tables[c].At(b) != tables[c].At(b) {
						require.FailNow(m.t, "a step reads a block that its sequence has no more")
					}
				}
			}
		}
	}
}

// plan forms a step and checks what every step must keep.
func (m *sim) plan() bool {
	if len(m.flying) == m.flight {
		return false
	}
	f := &simStep{}
	if n := len(m.spare); n > 0 {
		f, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	f.ran = false
	var hopeless *Seq
	running := m.state.Running()
	f.parts, hopeless = m.state.Plan(&f.step, f.parts, Budget{m.rows, m.alone, m.fixed})
	m.step, m.parts = f.step, f.parts
	if len(m.flying) > 0 {
		require.Equal(m.t, running, m.state.Running(), "somebody gave way while others may give blocks back")
	}
	if hopeless != nil {
		require.Empty(m.t, m.flying, "hopeless while others may give blocks back")
		m.failed[hopeless.ID] = true
		m.state.Finish(hopeless)
		return true
	}
	m.checkStep(f)
	if len(f.parts) == 0 {
		m.checkIdle()
		m.spare = append(m.spare, f)
		return false
	}
	m.flying = append(m.flying, f)
	return true
}

// script forms steps, as many as are wanted and what they have; “…” is a step that comes back.
func (m *sim) script(want []string) {
	var got []string
	for _, w := range want {
		for m.serveKV() {
		}
		if w == "…" {
			m.back()
			got = append(got, w)
			continue
		}
		require.Less(m.t, len(m.flying), m.flight)
		m.plan()
		got = append(got, m.describe())
	}
	require.Equal(m.t, want, got)
}

// checkIdle: there is always a step while somebody could go on.
func (m *sim) checkIdle() {
	for _, q := range m.state.Seqs() {
		require.False(m.t, len(m.flying) == 0 && m.state.ready(q), "sequence %d is ready, and there is no step", q.ID)
	}
}

func (m *sim) checkStep(f *simStep) {
	rows, wanted := 0, 0
	seen := map[*Seq]bool{}
	for i, p := range f.parts {
		span := f.step.Spans[i]
		require.False(m.t, seen[p.Seq])
		require.False(m.t, m.state.Held(p.Seq), "a sequence goes on without its mask")
		seen[p.Seq] = true
		require.Equal(m.t, rows, span.Row)
		require.Equal(m.t, p.Rows, span.Rows)
		require.Equal(m.t, p.Seq.planned, span.Pos+span.Rows)
		if len(m.flying) == 0 {
			require.Equal(m.t, p.Seq.Done(), span.Pos)
		}
		if m.state.limits.Apart && f.step.Prompt {
			require.LessOrEqual(m.t, span.Pos+span.Rows, p.Seq.Prompt, "a step of prompts has a row of an answer")
		} else if m.state.limits.Apart {
			require.GreaterOrEqual(m.t, span.Pos, p.Seq.Prompt, "a step of answers has a row of a prompt")
		}
		for _, table := range span.Tables {
			require.GreaterOrEqual(m.t, table.Room(), span.Pos+span.Rows)
		}
		require.Equal(m.t, p.Proposed, span.Proposed)
		if known := span.Rows - p.Proposed; p.Proposed > 0 {
			require.Equal(m.t, len(p.Seq.Tokens), span.Pos+known)
			require.Equal(m.t, p.Proposed+1, p.Wanted)
			require.LessOrEqual(m.t, len(p.Seq.Tokens)+p.Wanted, p.Seq.MaxLen, "more than it may have")
			require.LessOrEqual(m.t, p.Seq.unread(), Window)
		}
		if tokens := f.step.Tokens[rows : rows+span.Rows-p.Proposed]; tokens[0] >= 0 {
			require.Equal(m.t, p.Seq.Tokens[span.Pos:span.Pos+len(tokens)], tokens)
		} else {
			require.Len(m.t, tokens, 1)
			require.True(m.t, m.state.limits.Draws && !p.Seq.Host)
			before := m.flying[len(m.flying)-1]
			require.Equal(m.t, p.Seq, before.owner(int(-1-tokens[0])), "whose token it goes on from")
		}
		rows += p.Rows
		wanted += p.Wanted
	}
	require.Len(m.t, f.step.Wanted, wanted)
	require.LessOrEqual(m.t, rows, m.state.limits.Rows)
	require.LessOrEqual(m.t, wanted, m.state.limits.Wanted)
	require.LessOrEqual(m.t, len(f.parts), m.state.limits.Seqs)
	m.max = max(m.max, rows)
}

// finish completes all steps in flight.
func (m *sim) finish() {
	for len(m.flying) > 0 {
		m.back()
	}
}

// back completes the oldest step in flight: each wanted row yields a token, if those proposed before it are accepted,
// which the client takes at once.
func (m *sim) back() {
	f := m.flying[0]
	m.device.run(f, m.flying)
	m.flying = m.flying[1:]
	m.spare = append(m.spare, f)
	if m.cost != nil {
		took, answers := m.takes(f)
		m.now += took
		m.state.Took(f.parts, took, answers, m.fixed)
	}
	at := 0
	for i, p := range f.parts {
		span, drawn := &f.step.Spans[i], f.drawn[at:at+p.Wanted]
		at += p.Wanted
		if p.Seq.Score || p.Wanted == 0 || !m.state.Live(p.Seq) {
			m.state.Advance(p, 0)
		}
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
		proposed := f.step.Tokens[span.Row+span.Rows-p.Proposed:][:p.Proposed]
		accepted := 0
		for accepted < p.Proposed && drawn[accepted] == proposed[accepted] {
			accepted++
		}
		m.proposed, m.accepted = m.proposed+p.Proposed, m.accepted+accepted
		m.state.Advance(p, accepted)
		m.deliver(p.Seq, drawn[:accepted+1])
	}
}

// takes is how long a step takes, and how long without its prompts.
func (m *sim) takes(f *simStep) (all, answers time.Duration) {
	all, answers = m.start, m.start
	for _, p := range f.parts {
		took := m.cost(p.Seq, p)
		all += took
		if p.Answers() {
			answers += took
		}
	}
	return all, answers
}

// deliver gives a sequence tokens, up to its end.
func (m *sim) deliver(q *Seq, tokens []int32) {
	for _, id := range tokens {
		m.got[q.ID] = append(m.got[q.ID], id)
		require.LessOrEqual(m.t, q.unread()+1, Window)
		end := m.state.Append(q, id)
		if q != m.unread {
			m.state.Consumed(q, q.Sent())
		}
		if end != NotEnded {
			m.ended[q.ID] = end
			return
		}
	}
	if m.bound[q.ID] {
		m.state.Hold(q)
	}
}

// askMask asks for the mask that is next, if any is due.
func (m *sim) askMask() bool {
	q := m.state.NextMask()
	if q != nil {
		require.True(m.t, m.bound[q.ID])
		require.NotContains(m.t, m.masks, q, "two masks of one sequence under way")
		m.masks = append(m.masks, q)
	}
	return q != nil
}

// findMask finds the first of the masks that were asked for.
func (m *sim) findMask() bool {
	if len(m.masks) == 0 {
		return false
	}
	m.state.Found(m.masks[0])
	m.masks = m.masks[1:]
	return true
}

// strike fails the oldest step in flight, and those after it.
func (m *sim) strike() *Seq {
	var parts []Part
	for _, f := range m.flying {
		parts = append(parts, f.parts...)
	}
	m.flying = nil
	return m.state.Strike(parts)
}

// reset loses the cache and what is in flight.
func (m *sim) reset() {
	m.flying, m.asked, m.masks = nil, nil, nil
	m.cache.Reset()
	m.state.Reset()
}

// run goes on until nothing is left to do.
func (m *sim) run() {
	for range 100_000 {
		busy := m.serveKV()
		for m.askMask() || m.findMask() {
			busy = true
		}
		for m.plan() {
			busy = true
		}
		if len(m.flying) > 0 {
			busy = true
			m.back()
		}
		if !busy && !m.serveKV() { // planning may have preempted a sequence
			return
		}
	}
	require.FailNow(m.t, "the scheduler does not come to rest")
}

// describe prints the newest step for the text tests.
func (m *sim) describe() string {
	var b strings.Builder
	if m.step.Prompt {
		b.WriteString("read ")
	}
	for i, p := range m.parts {
		if i > 0 {
			b.WriteString(", ")
		}
		span := m.step.Spans[i]
		fmt.Fprintf(&b, "%d %d+%d", p.Seq.ID, span.Pos, p.Rows)
		if token := m.step.Tokens[span.Row]; token < 0 {
			fmt.Fprintf(&b, "@%d", -1-token)
		}
		if p.Proposed > 0 {
			fmt.Fprintf(&b, "(%d)", p.Proposed)
		}
		if p.Again > 0 {
			fmt.Fprintf(&b, "^%d", p.Again)
		}
		if p.Wanted > 0 {
			b.WriteString("*")
		}
	}
	if len(m.parts) == 0 {
		return "idle"
	}
	return b.String()
}
