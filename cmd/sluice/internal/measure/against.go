package measure

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// compare loads the model once more, with a cache of the other type, and has both read the chunks side by side.
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
	k, v := c.Formats().Shares(engine.Info.Program.Program)
	return env.PrintResult(e.Stdout, Compared{
		Result: sum.Result(), KV: c.Formats().String(), Other: kv.String(), BitsK: k.Bits(), BitsV: v.Bits(),
		Chunks: len(chunks), Tokens: tokens, Scored: sum.Positions(),
	})
}

// side compares what two engines say of the second half of a chunk.
func side(ctx context.Context, engine, against *actors.Engine, chunk []int32, sum *divergence.Sum) error {
	ours, err := scoring(engine, chunk)
	if err != nil {
		return err
	}
	defer ours.Close()
	theirs, err := scoring(against, chunk)
	if err != nil {
		return err
	}
	defer theirs.Close()
	for pos := range len(chunk) - 1 {
		row, err := ours.row(ctx, pos)
		if err != nil {
			return err
		}
		other, err := theirs.row(ctx, pos)
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

// rowReader reads the logits of one position after the other.
type rowReader struct {
	*actors.Stream
	vocab int
	ev    actors.Event
}

func scoring(engine *actors.Engine, chunk []int32) (*rowReader, error) {
	stream, err := engine.Score(chunk)
	if err != nil {
		return nil, err
	}
	return &rowReader{Stream: stream, vocab: engine.Info.Vocab}, nil
}

// row is that of a position, valid until the next one is read.
func (r *rowReader) row(ctx context.Context, pos int) ([]float32, error) {
	for (pos-r.ev.Pos)*r.vocab >= len(r.ev.Logits) {
		if err := r.Next(ctx, &r.ev); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("the logits end before position %d", pos)
			}
			return nil, err
		}
	}
	return r.ev.Logits[(pos-r.ev.Pos)*r.vocab:][:r.vocab], nil
}
