package synth

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// The least tokens that the small vocabularies have room in.
const (
	clipSmall = 1024
	t5Small   = 256
)

// vocabulary spells each word letter by letter. The last two tokens begin and end a text.
func (c clip) vocabulary(m *meta.Map) {
	texts := make([]string, 0, c.tokens)
	for _, letter := range letters() {
		if letter == strings.ToLower(letter) { // CLIP has no capitals
			texts = append(texts, letter, letter+"</w>")
		}
	}
	texts = filled(texts, c.tokens-2)
	texts = append(texts, "<|startoftext|>", "<|endoftext|>")
	vocabulary(m, "clip", texts, map[int]int32{c.tokens - 2: controlToken, c.tokens - 1: controlToken})
	m.Set("tokenizer.ggml.bos_token_id", uint32(c.tokens-2))
	m.Set("tokenizer.ggml.eos_token_id", uint32(c.tokens-1))
}

// vocabulary spells each word letter by letter.
func (t t5) vocabulary(m *meta.Map) {
	texts := filled(append([]string{"<pad>", "</s>", "<unk>", "▁"}, letters()...), t.tokens)
	vocabulary(m, "t5", texts, map[int]int32{0: controlToken, 1: controlToken, 2: unknownToken})
	scores := make([]float32, len(texts))
	for i := range scores {
		scores[i] = -float32(len(texts[i]))
	}
	m.Set("tokenizer.ggml.scores", scores)
	m.Set("tokenizer.ggml.eos_token_id", uint32(1))
	m.Set("tokenizer.ggml.padding_token_id", uint32(0))
	m.Set("tokenizer.ggml.add_space_prefix", true)
	m.Set("tokenizer.ggml.remove_extra_whitespaces", true)
}

// letters are the signs that the small vocabularies have a token for: those of ASCII.
func letters() (all []string) {
	for c := '!'; c <= '~'; c++ {
		all = append(all, string(c))
	}
	return all
}

// Types of tokens, as GGUF files number them.
const (
	normalToken  = int32(1)
	unknownToken = int32(2)
	controlToken = int32(3)
)

// filled is texts with tokens that no text has, up to n.
func filled(texts []string, n int) []string {
	for len(texts) < n {
		texts = append(texts, fmt.Sprintf("<filler_%d>", len(texts)))
	}
	return texts
}

// vocabulary sets the keys that all vocabularies have; kinds are the types of tokens that are not normal.
func vocabulary(m *meta.Map, model string, texts []string, kinds map[int]int32) {
	types := make([]int32, len(texts))
	for i := range types {
		types[i] = normalToken
		if kind, ok := kinds[i]; ok {
			types[i] = kind
		}
	}
	m.Set("tokenizer.ggml.model", model)
	m.Set("tokenizer.ggml.pre", "default")
	m.Set("tokenizer.ggml.tokens", texts)
	m.Set("tokenizer.ggml.token_type", types)
}
