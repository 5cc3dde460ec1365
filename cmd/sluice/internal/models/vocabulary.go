package models

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/token"
)

// ParseIDs reads ids of a vocabulary of size tokens, split by commas, blanks or brackets, so that a JSON array
// is a list of ids too.
func ParseIDs(list string, size int) ([]token.ID, error) {
	words := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\r\n[]", r) })
	ids := make([]token.ID, 0, len(words))
	for i, word := range words {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("token %d is %q, want an id such as 1234", i+1, word)
		}
		if id < 0 || id >= int64(size) {
			return nil, fmt.Errorf("token %d is %d, but the vocabulary has the ids 0 to %d", i+1, id, size-1)
		}
		ids = append(ids, token.ID(id))
	}
	return ids, nil
}

// OpenVocab reads only the vocabulary of a model.
func OpenVocab(e *env.Env, value string) (*token.Vocab, error) {
	f, err := namedmodel.Open(e.Lookup, value)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	vocab, err := token.New(&f.Meta)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return vocab, nil
}
