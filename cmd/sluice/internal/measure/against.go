package measure

import (
	"context"
	"fmt"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/divergence"
)

// Compared is what perplexity --against prints. Its names are part of the interface.
type Compared struct {
	divergence.Result
	KV     string  `json:"kv"`
	Other  string  `json:"against"`
	BitsK  float64 `json:"bits_k"` // of a value, scales and all
	BitsV  float64 `json:"bits_v"`
	Chunks int     `json:"chunks"`
	Tokens int     `json:"tokens"` // of the whole text
	Scored int     `json:"scored"`
}

// compare loads the model again, with the cache type of --against, and runs the chunks through both.
func (c *Perplexity) compare(ctx context.Context, e *env.Env, engine *actors.Engine, d backend.Device,
	text string) error {
	kv, err := backend.ParseKV(c.Against)
	if err != nil {
		return env.Usagef("--against: %v", err)
	}
	other, err := c.Enter(ctx, e, engine.House(), d, models.NamedFile{Path: c.Model}, func(m *actors.Model) {
		c.sized(m)
		m.KV = kv
	})
	if err != nil {
		return fmt.Errorf("the model with a cache in %s beside it: %w", c.Against, err)
	}
	chunks, tokens, err := chunksOf(engine.Vocab(), text, c.Chunk, c.Most)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	bar := e.Progress("perplexity")
	bar.Count = true
	defer bar.Clear()
	var sum divergence.Sum
	for i, chunk := range chunks {
		if err := side(ctx, engine, other, chunk, &sum); err != nil {
			return err
		}
		so := sum.Result()
		bar.What = fmt.Sprintf("ppl %.6g, %.6g", so.PPL, so.Against)
		bar.Show(int64(i+1), int64(len(chunks)))
	}
	ours := engine.Info.KV
	return env.PrintResult(e.Stdout, Compared{
		Result: sum.Result(), KV: ours.Type, Other: kv.String(), BitsK: ours.BitsK, BitsV: ours.BitsV,
		Chunks: len(chunks), Tokens: tokens, Scored: sum.Positions(),
	})
}

// side compares the distributions of two engines over the second half of a chunk.
func side(ctx context.Context, engine, against *actors.Engine, chunk []int32, sum *divergence.Sum) error {
	ours, err := newRowReader(engine, chunk)
	if err != nil {
		return err
	}
	defer ours.Close()
	theirs, err := newRowReader(against, chunk)
	if err != nil {
		return err
	}
	defer theirs.Close()
	for pos := range len(chunk) - 1 {
		row, err := ours.next(ctx)
		if err != nil {
			return err
		}
		other, err := theirs.next(ctx)
		if err != nil {
			return err
		}
		if pos >= len(chunk)/2 {
			sum.Add(row, other, chunk[pos+1])
		}
	}
	sum.EndChunk()
	return nil
}
