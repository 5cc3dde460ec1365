package answer

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestThinking: white space that sets thinking apart is left out, however the text is cut.
func TestThinking(t *testing.T) {
	const thought, text = " \nHm, 2.\n", "\n\nTwo\n"
	for size := 1; size <= len(thought); size++ {
		c := &Choice{}
		for piece := range slices.Chunk([]byte(thought), size) {
			c.add(&actors.Event{Thought: piece})
		}
		for piece := range slices.Chunk([]byte(text), size) {
			c.add(&actors.Event{Text: piece})
		}
		require.Equal(t, "Hm, 2.\n", string(c.New.Thought))
		require.Equal(t, "Two\n", string(c.New.Text))
	}
	c := &Choice{}
	c.add(&actors.Event{Text: []byte(text)})
	require.Equal(t, text, string(c.New.Text), "without thinking it is the model's")
}

// TestUsageOf: choices of one prompt share it.
func TestUsageOf(t *testing.T) {
	u := actors.Usage{Prompt: 10, Cached: 3, Generated: 2}
	sum := Total([]*Choice{{Prompt: 0, Usage: u}, {Prompt: 0, Usage: u}, {Prompt: 1, Usage: u}})
	require.Equal(t, actors.Usage{Prompt: 20, Cached: 6, Generated: 6}, sum)
}

// TestOffsets: a token begins where the text of those before it ends, in characters. The token that ends an answer has
// no text and no place, and where nobody asked, nothing is kept.
func TestOffsets(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	v, err := token.New(&f.Meta)
	require.NoError(t, err)
	var ids []int32
	for id := range int32(v.Size()) { // tokens of whole characters, not all of one byte
		piece := v.Piece(id)
		wide := len(piece) != utf8.RuneCount(piece)
		if utf8.Valid(piece) && (wide || id%1000 == 7) && !v.IsControl(id) {
			ids = append(ids, id)
		}
	}
	wide := 0
	c, other := &Choice{vocab: v, Probs: true}, &Choice{vocab: v}
	text := ""
	for i, id := range ids {
		e := &actors.Event{HasToken: true, Token: id, LogProb: -1, Top: []sample.TokenProb{{ID: id}}}
		c.add(e)
		other.add(e)
		require.Equal(t, utf8.RuneCountInString(text), c.New.Probs[0].Offset, "token %d: %q", i, v.Piece(id))
		require.Equal(t, id, c.New.Probs[0].ID)
		require.Equal(t, e.Top, c.New.Probs[0].Top)
		if len(v.Piece(id)) != utf8.RuneCount(v.Piece(id)) {
			wide++
		}
		text += string(v.Piece(id))
		require.True(t, c.news())
		require.False(t, other.news())
		c.sent()
		require.False(t, c.news())
	}
	require.Positive(t, wide)
	c.add(&actors.Event{HasToken: true, Token: v.EOG()[0], Finish: actors.Stopped})
	require.Empty(t, c.New.Probs)
	c.add(&actors.Event{HasToken: true, Token: ids[0], Finish: actors.Stopped})
	require.Len(t, c.New.Probs, 1, "the last token of an answer that a text ended")
}
