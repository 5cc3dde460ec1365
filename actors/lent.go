package actors

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// lend completes a draft head's file (EAGLE-3) by the vocabulary and the token matrices of its target.
func lend(target, draft *gguf.File) {
	if name, _ := draft.Meta.String("general.architecture"); !arch.Guesses(name) {
		return
	}
	draft.Borrow(target, "token_embd.weight", "output.weight")
	if draft.Meta.Has("tokenizer.ggml.model") {
		return
	}
	for _, key := range target.Meta.Keys() {
		if value, _ := target.Meta.Get(key); strings.HasPrefix(key, "tokenizer.") {
			draft.Meta.Set(key, value)
		}
	}
}

// onlyGuesses is the error where a file is to run alone that has nobody's text of its own.
func onlyGuesses(name, architecture string) error {
	return fmt.Errorf("%s only guesses tokens for another model (%s): name that one, and this one by --draft", name,
		architecture)
}

// knownTokens reads which tokens a file's output matrix knows; nil: all of them.
func knownTokens(f *gguf.File) (tokens []int32, err error) {
	t, ok := f.Tensor(arch.EagleKnown)
	if !ok {
		return nil, nil
	}
	if t.Type != quant.I64 || len(t.Shape) != 1 {
		return nil, fmt.Errorf("tensor %s is %s of shape %v, want I64 and one dimension", t.Name, t.Type, t.Shape)
	}
	tokens = make([]int32, t.Shape[0])
	err = f.View(t, func(data []byte) error {
		for i := range tokens {
			id := binary.LittleEndian.Uint64(data[8*i:])
			if tokens[i] = int32(id); uint64(tokens[i]) != id { //nolint:gosec // compared
				return fmt.Errorf("tensor %s: value %d is %d, want a token's number", t.Name, i, int64(id)) //nolint:gosec // as stored
			}
		}
		return nil
	})
	return tokens, err
}
