package token

import (
	"errors"

	"github.com/sluice-ai/sluice/internal/meta"
)

// choice is the best way to reach a place in the text.
type choice struct {
	score float64
	id    ID
	from  int32
}

func (v *Vocab) planUnigram(*meta.Map) (func() error, error) {
	return nil, errors.New("tokenizer.ggml.model is t5, which is not ready")
}

func (v *Vocab) planWordPiece(*meta.Map) (func() error, error) {
	return nil, errors.New("tokenizer.ggml.model is bert, which is not ready")
}
