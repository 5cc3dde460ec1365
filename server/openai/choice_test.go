package openai

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
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

// TestProbsOfTheLastToken: a token that ends the answer is no part of it and has no log-probability; the one that
// completes a stop string has, and so has an end token that was told not to end it.
func TestProbsOfTheLastToken(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	defer f.Close()
	vocab, err := token.New(&f.Meta)
	require.NoError(t, err)
	eog, other := int32(-1), int32(-1)
	for id := range int32(vocab.Size()) {
		if vocab.IsEOG(id) {
			eog = id
		} else if !vocab.IsControl(id) {
			other = id
		}
	}
	for _, c := range []struct {
		token  int32
		finish actors.Finish
		want   int
	}{{other, actors.Running, 1}, {other, actors.Stopped, 1}, {other, actors.Length, 1}, {eog, actors.Stopped, 0},
		{eog, actors.Length, 1}, {eog, actors.Running, 1}} {
		choice := newChoice(0, 0, &order{probs: true}, nil, vocab)
		choice.add(&actors.Event{HasToken: true, Token: c.token, Finish: c.finish})
		require.Len(t, choice.probs, c.want, "%+v", c)
	}
}
