package measure

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/divergence"
)

type Perplexity struct {
	compute.EngineFlags
	File  string `short:"f" required:"" placeholder:"FILE" help:"Text to measure on; - is standard input."`
	Chunk int    `short:"c" default:"512" placeholder:"N" help:"Tokens of a chunk; the second half of each is scored. Default: 512."`
	Most  int    `name:"chunks" placeholder:"N" help:"Measure on the first N chunks only. Default: all."`

	Against string `name:"against" enum:",${kv}" default:"" placeholder:"TYPE" help:"Compare with a KV cache of this type, position by position, in the same run: the model is loaded twice."`

	JSON bool `name:"json" help:"Print JSON, as without it."`
}

func (Perplexity) Examples() [2]string {
	return [2]string{
		`sluice perplexity -f README.md`,
		`sluice perplexity -m model.gguf -f text.txt --kv q8 --against f16`,
	}
}

// Scores is what the command prints. Its names are part of the interface.
type Scores struct {
	PPL    float64 `json:"ppl"`
	Chunks int     `json:"chunks"`
	Tokens int     `json:"tokens"` // of the whole text
	Scored int     `json:"scored"`
}

func (c *Perplexity) Run(e *env.Env) error {
	if err := checkChunks(c.Ctx, c.Chunk, c.Most); err != nil {
		return err
	}
	text, err := e.ReadFile(c.File, env.MostText)
	if err != nil {
		return err
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	var device backend.Device
	engine, err := c.Start(ctx, e, func(cfg *actors.Config) {
		device, cfg.Speculate = cfg.Device, false
		c.sized(&cfg.Model)
	})
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	if c.Against != "" {
		return c.compare(ctx, e, engine, device, strings.TrimSuffix(string(text), "\n"))
	}
	bar := e.Progress("perplexity")
	bar.Count = true
	defer bar.Clear()
	result, err := measure(ctx, engine, strings.TrimSuffix(string(text), "\n"), c.Chunk, c.Most, func(p *Scores, of int) {
		bar.What = fmt.Sprintf("ppl %.6g", p.PPL) // short enough for 40 columns
		bar.Show(int64(p.Chunks), int64(of))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return env.PrintResult(e.Stdout, result)
}

// sized sets the sizes of a model that runs through chunks, one at a time.
func (c *Perplexity) sized(m *actors.Model) {
	m.Sequences = 1
	if m.Context == 0 {
		m.Context = c.Chunk
	}
}

// measure follows llama.cpp's protocol: the text in chunks of n tokens, each on an empty cache, with BOS in place of
// its first token where the model adds one; tokens n/2+1 to n−1 of a chunk are scored. seen is called after each chunk
// with the scores so far and the number of chunks.
func measure(ctx context.Context, engine *actors.Engine, text string, n, most int,
	seen func(soFar *Scores, of int)) (*Scores, error) {
	chunks, tokens, err := chunksOf(engine.Vocab(), text, n, most)
	if err != nil {
		return nil, err
	}
	p := &Scores{Tokens: tokens}
	sum := 0.0
	for _, chunk := range chunks {
		err := eachRow(ctx, engine, chunk, func(pos int, row []float32) error {
			if pos >= n/2 && pos < n-1 {
				sum += divergence.Surprise(row, chunk[pos+1])
				p.Scored++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		p.Chunks++
		p.PPL = math.Exp(sum / float64(p.Scored))
		seen(p, len(chunks))
	}
	return p, nil
}
