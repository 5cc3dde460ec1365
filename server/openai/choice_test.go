package openai

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// TestThinking: white space that sets thinking apart is left out, however the text is cut.
func TestThinking(t *testing.T) {
	const thought, text = " \nHm, 2.\n", "\n\nTwo\n"
	for size := 1; size <= len(thought); size++ {
		c := newChoice(0, 0, &order{}, nil, nil)
		for piece := range slices.Chunk([]byte(thought), size) {
			c.add(&actors.Event{Thought: piece})
		}
		for piece := range slices.Chunk([]byte(text), size) {
			c.add(&actors.Event{Text: piece})
		}
		require.Equal(t, "Hm, 2.\n", string(c.thought))
		require.Equal(t, "Two\n", string(c.text))
	}
	c := newChoice(0, 0, &order{}, nil, nil)
	c.add(&actors.Event{Text: []byte(text)})
	require.Equal(t, text, string(c.text), "without thinking it is the model's")
}

// TestUsageOf: choices of one prompt share it.
func TestUsageOf(t *testing.T) {
	u := actors.Usage{Prompt: 10, Cached: 3, Generated: 2}
	sum := usageOf([]*choice{{prompt: 0, usage: u}, {prompt: 0, usage: u}, {prompt: 1, usage: u}})
	require.Equal(t, actors.Usage{Prompt: 20, Cached: 6, Generated: 6}, sum)
}
