package batch

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/stages/kv"
)

// follow submits a sequence that follows a text, and draws most tokens after it.
func (m *sim) follow(id ID, text []int32, most int) *Seq {
	q := &Seq{ID: id, Tokens: slices.Clone(text), Follows: true,
		Terms: &Terms{Prompt: len(text), MaxLen: len(text) + most}}
	q.Owner = q
	m.state.Submit(q)
	return q
}

// TestFollow: whatever a text turns out to be, what is drawn after it is what follows it, in places that are too few:
// rows of what it is not are written again, and nobody else finds them in the cache. Who lost its place is told.
func TestFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Seqs: 4, Rows: rapid.IntRange(8, 64).Draw(t, "rows"), Wanted: 8, Beside: 16, Proposed: 15}
		l.Draws, l.Apart = rapid.Bool().Draw(t, "draws"), rapid.Bool().Draw(t, "apart")
		m := newSimOf(t, l, rapid.IntRange(1, 3).Draw(t, "flight"), kv.Class{Blocks: rapid.IntRange(8, 24).Draw(t, "blocks")})
		texts, all := map[ID][]int32{}, map[ID]*Seq{}
		last := ID(0)
		for range rapid.IntRange(1, 40).Draw(t, "times") {
			asked := []ID{}
			for range rapid.IntRange(1, 3).Draw(t, "at once") {
				id, most := ID(rapid.IntRange(1, 4).Draw(t, "who")), rapid.IntRange(1, 15).Draw(t, "most")
				if slices.Contains(asked, id) {
					continue
				}
				asked = append(asked, id)
				q := all[id]
				if q == nil {
					texts[id] = prompt(rapid.IntRange(1, 150).Draw(t, "prompt"), 0)
				} else { // some of what it drew is right, and others follow
					drew := q.Tokens[len(texts[id]):]
					right := rapid.IntRange(0, len(drew)).Draw(t, "right")
					texts[id] = append(slices.Clone(texts[id]), drew[:right]...)
					texts[id] = append(texts[id], prompt(rapid.IntRange(1, 20).Draw(t, "others"), 900)...)
				}
				if len(texts[id]) > 400 || q == nil || !m.state.Follow(q, texts[id], most) {
					if q != nil {
						m.state.Cancel(q.ID)
					}
					texts[id] = texts[id][:min(len(texts[id]), 300)]
					last++
					all[id] = m.follow(last, texts[id], most)
				}
			}
			m.run()
			require.Empty(t, m.failed, "one that rests gives way")
			for _, id := range asked {
				q := all[id]
				require.True(t, q.Rests(), "all come to their turn")
				computed := slices.Clone(q.Tokens)
				for i := range computed[:q.Prompt] {
					if l.Apart {
						computed[i] = read(computed[i])
					}
				}
				for at := len(texts[id]); at < len(q.Tokens); at++ {
					require.Equal(t, next(computed[:at]), q.Tokens[at])
				}
				require.Equal(t, q.MaxLen, len(q.Tokens))
				require.Equal(t, texts[id], q.Tokens[:len(texts[id])])
			}
		}
	})
}

// What follows has all that a text adds computed in one step, beside decodes, as a row of an answer.
func TestFollowedRows(t *testing.T) {
	m := newSim(t, Limits{Seqs: 4, Rows: 64, Wanted: 8, Beside: 16, Proposed: 15}, 64)
	text := prompt(3, 0)
	q := m.follow(1, text, 3)
	m.run()
	require.True(t, q.Rests())
	require.True(t, m.state.Placed(q))
	text = slices.Clone(q.Tokens)
	text = append(text, 7)
	require.True(t, m.state.Follow(q, text, 2))
	require.False(t, m.state.Follow(q, text, 2), "it does not rest")
	require.True(t, m.plan())
	require.Equal(t, "1 5+2^1*", m.describe())
	m.run()
	m.state.Cancel(q.ID)
	m.run()
	require.False(t, m.state.Placed(q))
	require.False(t, m.state.Follow(q, text, 2))
	require.Zero(t, m.state.Len())
}

// What takes more than tokens computes anew what it had drawn itself, once it is the other's.
func TestFollowedAnew(t *testing.T) {
	for _, anew := range []bool{false, true} {
		m := newSim(t, Limits{Seqs: 4, Rows: 64, Wanted: 8, Beside: 16, Proposed: 15}, 64)
		q := m.follow(1, prompt(3, 0), 4)
		q.Anew = anew
		m.run()
		require.Len(t, q.Tokens, 7)
		text := slices.Clone(q.Tokens[:6]) // three of four are right
		text = append(text, 7)
		require.True(t, m.state.Follow(q, text, 1))
		require.True(t, m.plan())
		require.Equal(t, map[bool]string{false: "1 6+1*", true: "1 3+4*"}[anew], strings.ReplaceAll(m.describe(), "^3", ""))
		m.run()
	}
}

// TestRoom: how many tokens there is room for after a sequence's, between its steps.
func TestRoom(t *testing.T) {
	m := newSim(t, Limits{Seqs: 4, Rows: 64, Wanted: 8, Beside: 16, Proposed: 15, Draws: true}, 64)
	q := m.submit(1, prompt(3, 0), 9)
	require.Zero(t, m.state.Room(q), "it has no blocks")
	for m.serveKV() {
	}
	require.Zero(t, m.state.Room(q), "its prompt is to be read")
	require.True(t, m.plan())
	require.Zero(t, m.state.Room(q), "it is in flight")
	m.finish()
	require.Equal(t, 7, m.state.Room(q), "one more token is drawn")
	m.run()
	require.Zero(t, m.state.Room(q), "it has ended")
}
