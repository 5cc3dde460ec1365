package token_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/token"
)

// clipCases are merges that we made of a few sentences, and the ids that Hugging Face's tokenizers.js 0.2.0 gives to
// texts with them, by the normaliser and the expressions of CLIP's published tokenizer.json.
type clipCases struct {
	Merges []string
	Cases  []struct {
		Text string
		IDs  []token.ID
	}
}

func readClip(t require.TestingT) (c clipCases) {
	data, err := os.ReadFile(filepath.Join("testdata", "clip.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &c))
	return c
}

// clips is a vocabulary laid out as CLIP's: bytes, bytes at the end of a word, what merges make, and the two ends.
func clips(merges []string) *meta.Map {
	var texts, other []string
	next := rune(0x100)
	for b := range rune(256) {
		if b > ' ' && b < 0x7F || b > 0xA0 && b != 0xAD {
			texts = append(texts, string(b))
		} else {
			other = append(other, string(next))
			next++
		}
	}
	texts = append(texts, other...)
	for _, text := range texts {
		texts = append(texts, text+"</w>")
	}
	for _, m := range merges {
		texts = append(texts, strings.Replace(m, " ", "", 1))
	}
	n := len(texts)
	texts = append(texts, "<|startoftext|>", "<|endoftext|>")
	types := make([]int32, len(texts))
	for i := range types {
		types[i] = 1
	}
	types[n], types[n+1] = 3, 3
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "clip")
	m.Set("tokenizer.ggml.tokens", texts)
	m.Set("tokenizer.ggml.token_type", types)
	m.Set("tokenizer.ggml.merges", merges)
	m.Set("tokenizer.ggml.bos_token_id", uint32(n))
	m.Set("tokenizer.ggml.eos_token_id", uint32(n+1))
	return m
}

// TestClipLikeTheirs: ids are those of another implementation.
func TestClipLikeTheirs(t *testing.T) {
	c := readClip(t)
	v := mustNew(t, clips(c.Merges))
	require.Greater(t, len(c.Cases), 30)
	for _, text := range c.Cases {
		ids, err := v.Encode(nil, text.Text, token.Options{AddSpecial: true})
		require.NoError(t, err)
		require.Equal(t, text.IDs, ids, "%q", text.Text)
	}
}

// TestClip: text forms no token that begins or ends a text, comes back as words, and is bounded.
func TestClip(t *testing.T) {
	v := mustNew(t, clips(readClip(t).Merges))
	ids, err := v.Encode(nil, "<|endoftext|> A Cat", token.Options{})
	require.NoError(t, err)
	require.Equal(t, "<| endoftext |> a cat ", string(v.Decode(nil, ids, true)))
	_, err = v.Encode(nil, strings.Repeat("a", 600<<10), token.Options{})
	require.ErrorContains(t, err, "a word of 614400 bytes")
	asked := 0
	stop := func() bool { asked++; return asked > 1 }
	_, err = v.Encode(nil, strings.Repeat("cat ", 60<<10), token.Options{Stop: stop})
	require.ErrorIs(t, err, token.ErrStopped)
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "clip")
	m.Set("tokenizer.ggml.tokens", []string{"a", "b</w>", "x y", "<|startoftext|>"})
	m.Set("tokenizer.ggml.bos_token_id", uint32(3))
	_, err = token.New(m)
	require.ErrorContains(t, err, "tokenizer.ggml.eos_token_id names no token of the vocabulary")
	m.Set("tokenizer.ggml.add_eos_token", false)
	ids, err = mustNew(t, m).Encode(nil, "ab a 中 b", token.Options{})
	require.NoError(t, err)
	require.Equal(t, []token.ID{0, 1, 1}, ids, "bytes without tokens are left out")
}
