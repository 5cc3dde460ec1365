package sluice

import (
	"context"
	"fmt"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/stages/embed"
)

// Embed returns a vector of length 1 for each text, made as the model's file says. The model has to be one that embeds;
// see Info.
func (m *Model) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	e := m.engine
	read := make([][]int32, len(texts))
	for i, text := range texts {
		ids, err := e.Read(actors.Request{Text: text, PlainText: true}, nil, func() bool { return ctx.Err() != nil })
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("text %d: %w", i+1, err)
		}
		read[i] = ids
	}
	all, err := e.Vectors(ctx, read, e.Info.Program.Pooling)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		embed.Normalize(v)
	}
	return all, nil
}
