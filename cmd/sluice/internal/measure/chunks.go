package measure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/token"
)

// checkChunks checks the flags of commands that go through a text in chunks.
func checkChunks(context, n, most int) error {
	if context > 0 && context < n {
		return env.Usagef("--ctx is %d, but a chunk has %d tokens (-c): want at least as many", context, n)
	}
	return cmp.Or(env.Within("-c", n, 4, env.MaxTokens), env.Within("--chunks", most, 0, env.MaxTokens))
}

// chunksOf divides a text into chunks of n tokens; tokens is the number of tokens of the whole text.
func chunksOf(vocab *token.Vocab, text string, n, most int) (chunks [][]int32, tokens int, err error) {
	ids, err := vocab.Encode(nil, text, token.Options{AddSpecial: true})
	if err != nil {
		return nil, 0, err
	}
	if len(ids) < 2*n {
		return nil, 0, fmt.Errorf("the text has %d tokens: want at least %d, two chunks", len(ids), 2*n)
	}
	bos, addsBOS := vocab.BOS()
	addsBOS = addsBOS && ids[0] == bos
	for i := 0; i+n <= len(ids) && (most == 0 || len(chunks) < most); i += n {
		chunk := slices.Clone(ids[i : i+n])
		if addsBOS {
			chunk[0] = bos
		}
		chunks = append(chunks, chunk)
	}
	return chunks, len(ids), nil
}
