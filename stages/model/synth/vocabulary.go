package synth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// Vocabulary adds to m the vocabulary of another model, chat template and special tokens included, with fillers up
// to size tokens. Text never becomes a filler, but the model may well answer with one.
func Vocabulary(m, from *meta.Map, size int) error {
	const normal = int32(1) // the token type
	tokens, err := from.Strings("tokenizer.ggml.tokens")
	if err != nil {
		return err
	}
	types, err := from.Ints("tokenizer.ggml.token_type")
	if err != nil {
		return err
	}
	if len(types) != len(tokens) {
		return fmt.Errorf("tokenizer.ggml.token_type: has %d entries, want %d", len(types), len(tokens))
	}
	if size < len(tokens) {
		return fmt.Errorf("a vocabulary of %d tokens is too small, want at least %d", size, len(tokens))
	}
	for _, key := range from.Keys() {
		if strings.HasPrefix(key, "tokenizer.") {
			value, _ := from.Get(key)
			m.Set(key, value)
		}
	}
	texts := slices.Grow(slices.Clone(tokens), size-len(tokens))
	kinds := make([]int32, 0, size)
	for _, t := range types {
		kinds = append(kinds, int32(t))
	}
	for id := len(tokens); id < size; id++ {
		texts = append(texts, fmt.Sprintf("<filler_%d>", id))
		kinds = append(kinds, normal)
	}
	m.Set("tokenizer.ggml.tokens", texts)
	m.Set("tokenizer.ggml.token_type", kinds)
	return nil
}
