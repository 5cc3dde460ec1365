package token_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// small is a byte-level vocabulary of 256 bytes, a few merges, a control and a user-defined token.
func small() *meta.Map {
	var tokens []string
	var types []int32
	add := func(kind int32, texts ...string) {
		for _, text := range texts {
			tokens, types = append(tokens, text), append(types, kind)
		}
	}
	for b := range 256 {
		add(1, spell(byte(b)))
	}
	merges := []string{"a a", "Ġ a", "aa aa", "l l", "h e", "he ll", "Ã ©", "ð Ł", "ðŁ ĺ", "Ġ Ġ", "ĠĠ ĠĠ", "Ċ Ċ", "< |", "| >"}
	for _, m := range merges {
		add(1, strings.Replace(m, " ", "", 1))
	}
	add(3, "<|end|>", "<s>")
	add(4, "<tool>")
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "gpt2")
	m.Set("tokenizer.ggml.pre", "qwen2")
	m.Set("tokenizer.ggml.tokens", tokens)
	m.Set("tokenizer.ggml.token_type", types)
	m.Set("tokenizer.ggml.merges", merges)
	m.Set("tokenizer.ggml.bos_token_id", uint32(len(tokens)-2))
	m.Set("tokenizer.ggml.add_bos_token", true)
	return m
}

// spell writes a byte in the alphabet of byte-level vocabularies.
func spell(b byte) string {
	switch {
	case b <= ' ':
		return string(rune(0x100) + rune(b))
	case b >= 0x7F && b <= 0xA0:
		return string(rune(0x121) + rune(b-0x7F))
	case b == 0xAD:
		return string(rune(0x143))
	}
	return string(rune(b))
}

// pieces is a SentencePiece BPE vocabulary of bytes and a few words.
func pieces() *meta.Map {
	tokens, types, scores := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}, []float32{0, 0, 0}
	for b := range 256 {
		tokens, types, scores = append(tokens, "<0x"+strings.ToUpper(hex2(byte(b)))+">"), append(types, 6), append(scores, 0)
	}
	for i, text := range []string{"▁", "a", "e", "h", "l", "o", "é", "aa", "▁▁", "▁a", "he", "ll", "llo", "hello", "▁hello", "aaaa", "</", "s>"} {
		tokens, types, scores = append(tokens, text), append(types, 1), append(scores, -float32(i))
	}
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "llama")
	m.Set("tokenizer.ggml.tokens", tokens)
	m.Set("tokenizer.ggml.token_type", types)
	m.Set("tokenizer.ggml.scores", scores)
	return m
}

func hex2(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

func embedded(t require.TestingT) *meta.Map {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	return &f.Meta
}

// exactVocabs are vocabularies that can spell any text.
func exactVocabs(t require.TestingT) map[string]*token.Vocab {
	out := map[string]*token.Vocab{}
	for name, m := range map[string]*meta.Map{"bytes": small(), "sentencepiece": pieces(), "embedded": embedded(t), "world": worldly()} {
		v, err := token.New(m)
		require.NoError(t, err, name)
		out[name] = v
	}
	return out
}

func anyText() *rapid.Generator[string] {
	parts := []string{"a", "aaaa", "hello", " ", "  ", "\n", "é", "e\u0301", "中文", "😀", "<|end|>", "<s>", "</s>", "<tool>", "|>", "<|",
		"'s", "123", "\x00", "\t"}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(parts), rapid.String()), 0, 12).Draw(t, "parts"), "")
	})
}

// TestRoundTrip: valid text comes back as it was, whatever is parsed, token by token too.
func TestRoundTrip(t *testing.T) {
	for name, v := range exactVocabs(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := anyText().Draw(t, "text")
				parse := rapid.Bool().Draw(t, "parse special")
				if name == "sentencepiece" { // which writes a space so
					text = strings.ReplaceAll(text, "\u2581", " ")
				}
				ids, err := v.Encode(nil, text, token.Options{ParseSpecial: parse})
				require.NoError(t, err)
				require.Equal(t, text, string(v.Decode(nil, ids, true)))
			})
		})
	}
}

// TestNoForgery: without ParseSpecial no text makes a control token.
func TestNoForgery(t *testing.T) {
	for name, v := range exactVocabs(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				ids, err := v.Encode(nil, anyText().Draw(t, "text"), token.Options{})
				require.NoError(t, err)
				for _, id := range ids {
					require.False(t, v.IsControl(id), "token %d, %q", id, v.Piece(id))
				}
			})
		})
	}
}

// TestStreamIsDecode: what a stream gives, put together, is what Decode gives, for any ids; and no part of it ends
// inside a character that the next ids complete.
func TestStreamIsDecode(t *testing.T) {
	for name, v := range exactVocabs(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				ids := rapid.SliceOfN(rapid.Int32Range(-1, int32(v.Size())), 0, 30).Draw(t, "ids")
				text, err := v.Encode(nil, anyText().Draw(t, "text"), token.Options{AddSpecial: true, ParseSpecial: true})
				require.NoError(t, err)
				requireStream(t, v, slices.Concat(ids, text), rapid.Bool().Draw(t, "special"))
			})
		})
	}
}

func requireStream(t require.TestingT, v *token.Vocab, ids []token.ID, special bool) {
	whole := v.Decode(nil, ids, special)
	s := v.Stream(special)
	var got []byte
	at := 0 // of the first character of whole that got has not reached the end of
	for _, id := range ids {
		got = append(got, s.Push(id)...)
		for at < len(got) {
			_, n := utf8.DecodeRune(whole[at:])
			at += n
		}
		if at > len(got) {
			require.Fail(t, "split", "%q stops inside a character of %q", got, whole)
		}
	}
	got = append(got, s.Flush()...)
	require.Equal(t, string(whole), string(got))
	require.Empty(t, s.Flush())
}

// TestResume: a stream that goes on from other text keeps its first space.
func TestResume(t *testing.T) {
	v, err := token.New(pieces())
	require.NoError(t, err)
	ids, err := v.Encode(nil, "hello", token.Options{})
	require.NoError(t, err)
	require.Len(t, ids, 1)
	require.Equal(t, "hello", string(v.Stream(false).Push(ids[0])))
	require.Equal(t, " hello", string(v.Resume(false).Push(ids[0])))
}

// TestConcurrent: one vocabulary serves many goroutines.
func TestConcurrent(t *testing.T) {
	v, err := token.New(embedded(t))
	require.NoError(t, err)
	texts := []string{"hello world", strings.Repeat("ab ", 500), "<|im_start|>user\n中文😀", strings.Repeat("a", 3000)}
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 50 {
				text := texts[(g+i)%len(texts)]
				ids, err := v.Encode(nil, text, token.Options{ParseSpecial: true})
				if err != nil || string(v.Decode(nil, ids, true)) != text {
					t.Errorf("goroutine %d: %.40q does not come back: %v", g, text, err)
				}
			}
		})
	}
	group.Wait()
}

// TestEncodeAppends: ids are added to what dst holds.
func TestEncodeAppends(t *testing.T) {
	v, err := token.New(small())
	require.NoError(t, err)
	dst, err := v.Encode([]token.ID{7}, "hello <tool> aaaa", token.Options{AddSpecial: true})
	require.NoError(t, err)
	bos, _ := v.BOS()
	require.Equal(t, []token.ID{7, bos}, dst[:2])
}
