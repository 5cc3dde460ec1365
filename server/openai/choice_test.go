package openai

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// TestThinking: what a model thinks goes to its own field, however the text is cut.
func TestThinking(t *testing.T) {
	const text = "<think>\nHm, 2.\n</think>\n\nTwo"
	for size := 1; size <= len(text); size++ {
		c := newChoice(0, 0, &order{think: true}, nil, nil)
		for from := 0; from < len(text); from += size {
			c.add(&actors.Event{Text: []byte(text[from:min(from+size, len(text))])})
		}
		c.label(c.thinking.End())
		require.Equal(t, "Hm, 2.\n", string(c.thought))
		require.Equal(t, "Two", string(c.text))
	}
	c := newChoice(0, 0, &order{think: true, ending: "<|im_start|>assistant\n<think>\n"}, nil, nil)
	c.add(&actors.Event{Text: []byte("Hm.</think>Two")})
	require.Equal(t, "Hm.", string(c.thought), "the template began the thinking")
	require.Equal(t, "Two", string(c.text))
	c = newChoice(0, 0, &order{}, nil, nil)
	c.add(&actors.Event{Text: []byte(text)})
	require.Equal(t, text, string(c.text))
}

// TestUsageOf: choices of one prompt share it.
func TestUsageOf(t *testing.T) {
	u := actors.Usage{Prompt: 10, Cached: 3, Generated: 2}
	sum := usageOf([]*choice{{prompt: 0, usage: u}, {prompt: 0, usage: u}, {prompt: 1, usage: u}})
	require.Equal(t, actors.Usage{Prompt: 20, Cached: 6, Generated: 6}, sum)
}
