package token_test

import (
	"math"
	"testing"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/stretchr/testify/require"
)

// TestBrokenMetadata: one row for each thing that a file can get wrong, with the whole text a user sees.
func TestBrokenMetadata(t *testing.T) {
	for _, c := range []struct {
		name  string
		of    func() *meta.Map
		key   string
		value any // nil takes the key away
		want  string
	}{
		{"no model", small, "model", nil, "vocabulary: tokenizer.ggml.model: missing from the metadata"},
		{"model of another type", small, "model", uint32(1), "vocabulary: tokenizer.ggml.model: is of type uint32, want a string"},
		{"unknown model", small, "model", "plamo2", `vocabulary: tokenizer.ggml.model is "plamo2", want gpt2, gemma4, llama, t5, ` +
			`bert, rwkv or clip: sluice cannot encode text for it`},
		{"unknown pre-tokenizer", small, "pre", "gpt-9", `vocabulary: tokenizer.ggml.pre is "gpt-9", which sluice does not know: ` +
			`text would be cut wrongly`},
		{"no tokens", small, "tokens", nil, "vocabulary: tokenizer.ggml.tokens: missing from the metadata"},
		{"empty tokens", small, "tokens", []string{}, "vocabulary: tokenizer.ggml.tokens: is empty, want at least one token"},
		{"tokens of another type", small, "tokens", []int32{1}, "vocabulary: tokenizer.ggml.tokens: is of type []int32, want an " +
			"array of strings"},
		{"token twice", small, "tokens", []string{"a", "b", "a"}, `vocabulary: tokenizer.ggml.tokens: "a" is both token 0 and ` +
			`token 2, want each text once`},
		{"few types", small, "token_type", []int32{1}, "vocabulary: tokenizer.ggml.token_type: has 1 values, want one for each " +
			"of 273 tokens"},
		{"no merges", small, "merges", nil, "vocabulary: tokenizer.ggml.merges: missing from the metadata"},
		{"add_bos without BOS", small, "bos_token_id", uint32(math.MaxUint32), "vocabulary: tokenizer.ggml.add_bos_token: is " +
			"true or the model's default, but tokenizer.ggml.bos_token_id names no token of the vocabulary"},
		{"add_bos of another type", small, "add_bos_token", uint8(1), "vocabulary: tokenizer.ggml.add_bos_token: is of type uint8, " +
			"want a bool"},
		{"EOS of another type", pieces, "eos_token_id", "x", "vocabulary: tokenizer.ggml.eos_token_id: is of type string, want an " +
			"integer"},
		{"few scores", pieces, "scores", []float32{1}, "vocabulary: tokenizer.ggml.scores: has 1 values, want one for each of " +
			"277 tokens"},
		{"score that is no number", unigrams, "scores", []float32{0, 0, 0, 0, 0, float32(math.NaN()), 0, 0, 0, 0},
			"vocabulary: tokenizer.ggml.scores: value 5 is NaN, want a number: tokens are ordered by it"},
		{"short character map", unigrams, "precompiled_charsmap", []byte{1}, "vocabulary: tokenizer.ggml.precompiled_charsmap: has " +
			"1 bytes, want at least 4"},
		{"character map past its end", unigrams, "precompiled_charsmap", []byte{8, 0, 0, 0, 1, 2, 3, 4}, "vocabulary: " +
			"tokenizer.ggml.precompiled_charsmap: says that its table has 8 bytes, want a multiple of 4, at most 4"},
		{"no unknown token", unigrams, "tokens", []string{"a", "b"}, "vocabulary: tokenizer.ggml.unknown_token_id: names no token " +
			"of the vocabulary, but this kind needs one"},
		{"no separator", wordPieces, "seperator_token_id", nil, "vocabulary: tokenizer.ggml.add_sep_token: is true or the model's " +
			"default, but tokenizer.ggml.seperator_token_id names no token of the vocabulary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := token.New(with(c.of(), "tokenizer.ggml."+c.key, c.value))
			require.EqualError(t, err, c.want)
		})
	}
}

// TestDamagedCharacterMap: a table that leads out of itself is an error where text meets it.
func TestDamagedCharacterMap(t *testing.T) {
	v := mustNew(t, with(unigrams(), "tokenizer.ggml.precompiled_charsmap", []byte{4, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 'x', 0}))
	_, err := v.Encode(nil, "a", token.Options{})
	require.EqualError(t, err, "tokenizer.ggml.precompiled_charsmap: a transition leads out of the table: the file is damaged")
}

// TestUnknownBytes: without tokens for bytes, SentencePiece's unknown token stands for each byte.
func TestUnknownBytes(t *testing.T) {
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "llama")
	m.Set("tokenizer.ggml.tokens", []string{"<unk>", "<s>", "a", "▁"})
	v := mustNew(t, m)
	ids, err := v.Encode(nil, "aé", token.Options{})
	require.NoError(t, err)
	require.Equal(t, []token.ID{3, 2, 0, 0}, ids)
}

// TestLookups covers what chat templates and commands ask.
func TestLookups(t *testing.T) {
	v := mustNew(t, small())
	id, ok := v.Lookup("<tool>")
	require.True(t, ok)
	require.Equal(t, "<tool>", string(v.Piece(id)))
	require.False(t, v.IsControl(id))
	_, ok = v.Lookup("no such token")
	require.False(t, ok)
	require.Equal(t, "<s>", v.BOSText())
	require.Nil(t, v.Piece(-1))
	require.Nil(t, v.Piece(token.ID(v.Size())))
	require.False(t, v.IsEOG(-1))
	bos, ok := v.BOS()
	require.True(t, ok)
	require.True(t, v.IsControl(bos))
	end, ok := v.Lookup("<|end|>")
	require.True(t, ok)
	require.True(t, v.IsEOG(end), "its text is in the list")
}
