package openai

import (
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// textBreakers finds the tokens at which DRY starts anew.
func (a *API) textBreakers(texts []string) *sample.Breakers {
	v := a.Engine.Vocab()
	return sample.TextBreakers(texts, v.Size(), v.Piece, func(text string) []int32 {
		ids, _ := v.Encode(nil, text, token.Options{}) // a text without tokens breaks nothing
		return ids
	})
}
