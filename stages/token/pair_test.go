package token_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/token"
)

// TestPair: two texts stand behind one another as BERT and as XLM-RoBERTa read them.
func TestPair(t *testing.T) {
	roberta := func() *meta.Map { // <pad> begins texts
		m := unigrams()
		for key, id := range map[string]uint32{"bos": 0, "eos": 1, "seperator": 1} {
			m.Set("tokenizer.ggml."+key+"_token_id", id)
		}
		m.Set("tokenizer.ggml.add_bos_token", true)
		m.Set("tokenizer.ggml.add_eos_token", true)
		return m
	}
	const pad, end, a, hello = 0, 1, 4, 7
	for _, c := range []struct {
		name string
		of   *meta.Map
		want []token.ID
	}{
		{"BERT", wordPieces(), []token.ID{2, 7, 3, 4, 3}},
		{"XLM-RoBERTa", roberta(), []token.ID{pad, a, end, end, hello, end}},
		{"told so", with(roberta(), "tokenizer.ggml.add_sep_token", true), []token.ID{pad, a, end, end, hello, end}},
		{"told otherwise", with(roberta(), "tokenizer.ggml.add_sep_token", false), []token.ID{pad, a, end, hello, end}},
		{"no separator", with(roberta(), "tokenizer.ggml.seperator_token_id", nil), []token.ID{pad, a, end, hello, end}},
		{"no beginning", with(roberta(), "tokenizer.ggml.add_bos_token", nil), []token.ID{a, end, end, hello, end}},
	} {
		v := mustNew(t, c.of)
		first, err := v.Encode(nil, "a", token.Options{AddSpecial: true})
		require.NoError(t, err, c.name)
		second, err := v.Encode(nil, "hello", token.Options{AddSpecial: true})
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, append(first, v.Pair(second)...), c.name)
	}
}
