package token

import (
	"runtime"
	"strings"
	"testing"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/stretchr/testify/require"
)

// TestRulesAreLinear: no rule looks at a character more than a few times, whatever the text.
func TestRulesAreLinear(t *testing.T) {
	table := newClasses()
	all := preTokenizers()
	all["clip"] = preTokenizer{rules: clipRules()}
	for name, pre := range all {
		for _, unit := range append([]string{"<sentinel:1", "IMGIMGA", "éA", "A1", " \n", "x \t", "<|"}, nastyParts...) {
			text := strings.Repeat(unit, 5_000/len(unit))
			looks := 0
			split(pre.rules, chars{text: text, table: table, looks: &looks}, new(scratch))
			require.Less(t, looks, 40*len(text), "%s: %q again and again", name, unit)
		}
	}
}

// variety is a vocabulary that each BPE kind can be made of.
func variety(model string) *meta.Map {
	tokens := []string{"<unk>", "<s>", "</s>", "▁", "a", "aa", "aaaa", "aaaaaaaa", "ab", "ba", "abab", "▁▁", "▁▁▁▁", "b"}
	merges := []string{"a a", "aa aa", "aaaa aaaa", "a b", "b a", "ab ab", "▁ ▁", "▁▁ ▁▁"}
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", model)
	m.Set("tokenizer.ggml.tokens", tokens)
	m.Set("tokenizer.ggml.merges", merges)
	m.Set("tokenizer.ggml.bos_token_id", uint32(1))
	m.Set("tokenizer.ggml.eos_token_id", uint32(2))
	return m
}

// TestLinear: ten times the text takes ten times the merging steps, whatever the text. (Each step is a push to or
// a pop from a heap: a logarithm, which is not counted.)
func TestLinear(t *testing.T) {
	for _, model := range []string{"gpt2", "llama", "gemma4", "clip"} {
		v, err := New(variety(model))
		require.NoError(t, err)
		for _, unit := range []string{"a", "ab", "ba", " ", "aab", "x"} {
			steps := func(n int) int {
				s := new(scratch)
				_, err := v.kind.encode(nil, strings.Repeat(unit, n/len(unit)), true, s)
				require.NoError(t, err)
				return s.chain.steps
			}
			small, large := steps(10_000), steps(100_000)
			require.LessOrEqual(t, large, 11*small+100, "%s: 100000 bytes of %q", model, unit)
			require.LessOrEqual(t, large, 6*100_000, "%s: 100000 bytes of %q", model, unit)
		}
	}
}

// TestNoAlloc: once its memory has grown, encoding allocates nothing; SentencePiece copies the text once.
func TestNoAlloc(t *testing.T) {
	for model, allowed := range map[string]float64{"gpt2": 0, "llama": 1} {
		v, err := New(variety(model))
		require.NoError(t, err)
		s, dst := new(scratch), make([]ID, 0, 64)
		encode := func() {
			for _, f := range v.parsed.fragments("aab ab  <s>abab", s) {
				if f.id == none {
					dst, err = v.kind.encode(dst[:0], "aab ab  abab", true, s)
				}
			}
		}
		require.LessOrEqual(t, testing.AllocsPerRun(100, encode), allowed, model)
		require.NoError(t, err)
	}
}

// TestLongWordsCostLittle: the working memory of a long word, with what is garbage of it, is some 60 bytes for each of
// its own.
func TestLongWordsCostLittle(t *testing.T) {
	for _, model := range []string{"gpt2", "llama", "gemma4", "clip"} {
		v, err := New(variety(model))
		require.NoError(t, err)
		for _, unit := range []string{"a", "ab"} {
			text, dst := strings.Repeat(unit, maxWord/2), make([]ID, 0, maxWord)
			text = text[:maxWord/2]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := v.kind.encode(dst, text, false, new(scratch))
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			require.Less(t, float64(after.TotalAlloc-before.TotalAlloc)/float64(len(text)), 72.0, "%s: %q", model, unit)
		}
	}
}
