package token_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/token"
)

// TestAlike: vocabularies that number their tokens alike, also if one has more at its end, and others.
func TestAlike(t *testing.T) {
	const tokens = "tokenizer.ggml.tokens"
	texts := func(edit func([]string) []string) *token.Vocab {
		m := pieces()
		all, err := m.Strings(tokens)
		require.NoError(t, err)
		all = edit(slices.Clone(all))
		m = with(m, tokens, all)
		m = with(m, "tokenizer.ggml.token_type", slices.Repeat([]int32{1}, len(all)))
		m = with(m, "tokenizer.ggml.scores", make([]float32, len(all)))
		v, err := token.New(m)
		require.NoError(t, err)
		return v
	}
	same := func(all []string) []string { return all }
	more := func(n int) func([]string) []string {
		return func(all []string) []string {
			for i := range n {
				all = append(all, fmt.Sprintf("more %d", i))
			}
			return all
		}
	}
	v := texts(same)
	require.NoError(t, v.Alike(texts(same)))
	require.NoError(t, v.Alike(texts(more(128))))
	require.NoError(t, texts(more(128)).Alike(v))
	n := v.Size()
	require.EqualError(t, v.Alike(texts(more(129))),
		fmt.Sprintf("one has %d tokens, the other %d: they may differ by 128", n, n+129))
	require.EqualError(t, v.Alike(texts(func(all []string) []string {
		all[n-1] = "else"
		return all
	})), fmt.Sprintf(`token %d is "s>" in one and "else" in the other`, n-1))
	other, err := token.New(with(pieces(), "tokenizer.ggml.eos_token_id", uint32(7)))
	require.NoError(t, err)
	require.EqualError(t, v.Alike(other), "EOS is token 2 in one and 7 in the other")
}
