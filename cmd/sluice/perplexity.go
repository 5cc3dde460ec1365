package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/stages/token"
)

type perplexityCmd struct {
	engineFlags
	File  string `short:"f" required:"" placeholder:"FILE" help:"Text to measure on; - is standard input."`
	Chunk int    `short:"c" default:"512" placeholder:"N" help:"Tokens of a chunk; the second half of each is scored. Default: 512."`
	Most  int    `name:"chunks" placeholder:"N" help:"Measure on the first N chunks only. Default: all."`
	JSON  bool   `name:"json" help:"Print JSON, as without it."`
}

func (perplexityCmd) examples() [2]string {
	return [2]string{
		`sluice perplexity -f README.md`,
		`sluice perplexity -m model.gguf -f text.txt -c 512`,
	}
}

// checkChunks checks the flags of commands that go through a text in chunks.
func (f *engineFlags) checkChunks(n, most int) error {
	if f.Ctx > 0 && f.Ctx < n {
		return usagef("--ctx is %d, but a chunk has %d tokens (-c): want at least as many", f.Ctx, n)
	}
	return cmp.Or(within("-c", n, 4, maxTokens), within("--chunks", most, 0, maxTokens))
}

// perplexity is what the command prints. Its names are part of the interface.
type perplexity struct {
	PPL    float64 `json:"ppl"`
	Chunks int     `json:"chunks"`
	Tokens int     `json:"tokens"` // of the whole text
	Scored int     `json:"scored"`
}

func (c *perplexityCmd) Run(e *env) error {
	if err := c.checkChunks(c.Chunk, c.Most); err != nil {
		return err
	}
	text, err := e.readFile(c.File, mostText)
	if err != nil {
		return err
	}
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	engine, err := c.start(ctx, e, func(cfg *actors.Config) {
		cfg.Sequences = 1
		if cfg.Context == 0 {
			cfg.Context = c.Chunk
		}
	})
	if err != nil {
		return err
	}
	defer shut(engine)
	bar := &loadingBar{e: e, what: "perplexity", count: true, began: e.now()}
	defer bar.clear()
	result, err := measure(ctx, engine, strings.TrimSuffix(string(text), "\n"), c.Chunk, c.Most, func(p *perplexity, of int) {
		if e.isTerminal(e.stderr) {
			bar.what = fmt.Sprintf("ppl %.6g", p.PPL) // short enough for 40 columns
			bar.show(int64(p.Chunks), int64(of))
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return printResult(e.stdout, result)
}

// measure follows llama.cpp's protocol: the text in chunks of n tokens, each on an empty cache, with BOS in place
// of its first token where the model adds one; tokens n/2+1 to n−1 of a chunk are scored.
// seen gets what there is after each of how many chunks.
func measure(ctx context.Context, engine *actors.Engine, text string, n, most int,
	seen func(soFar *perplexity, of int)) (*perplexity, error) {
	chunks, tokens, err := chunksOf(engine.Vocab(), text, n, most)
	if err != nil {
		return nil, err
	}
	p := &perplexity{Tokens: tokens}
	sum := 0.0
	for _, chunk := range chunks {
		err := eachRow(ctx, engine, chunk, func(pos int, row []float32) error {
			if pos >= n/2 && pos < n-1 {
				sum += surprise(row, chunk[pos+1])
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

// chunksOf cuts a text into chunks of n tokens, and says how many tokens the whole has.
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

// surprise is −log of the probability that the logits give to the token.
func surprise(logits []float32, id int32) float64 {
	most := logits[0]
	for _, x := range logits {
		most = max(most, x)
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - most))
	}
	return math.Log(sum) - float64(logits[id]-most)
}
