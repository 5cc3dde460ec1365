package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/stages/sample"
)

type benchCmd struct {
	engineFlags
	Prompt   int  `short:"p" default:"512" placeholder:"N" help:"Tokens of the prompt. Default: 512."`
	Generate int  `short:"n" default:"128" placeholder:"N" help:"Tokens to generate after it. Default: 128."`
	Runs     int  `short:"r" default:"5" placeholder:"N" help:"Runs; medians are reported. One more warms up. Default: 5."`
	Seqs     int  `default:"1" placeholder:"N" help:"Sequences at once. Default: 1."`
	JSON     bool `name:"json" help:"Print JSON."`
}

func (benchCmd) examples() [2]string {
	return [2]string{`sluice bench`, `sluice bench -m model.gguf -t 2 -p 512 -n 128 -r 5 --json`}
}

func (c *benchCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	if c.Threads == 0 {
		c.Threads = runtime.NumCPU()
	}
	bandwidth, err := cpu.ReadBandwidth(min(c.Threads, runtime.NumCPU())) // each needs memory of its own
	if err != nil {
		return fmt.Errorf("measuring the memory: %w", err)
	}
	engine, err := c.start(ctx, e, func(cfg *actors.Config) {
		cfg.Sequences = c.Seqs
		if cfg.Context == 0 {
			cfg.Context = c.need()
		}
		cfg.Blocks = c.Seqs * (cfg.Context/64 + 1)
	})
	if err != nil {
		return err
	}
	defer shut(engine)
	r, err := c.measure(ctx, engine)
	if err != nil {
		return err
	}
	r.Model, r.Threads, r.Seqs = engine.Info.Name, c.Threads, c.Seqs
	r.WeightBytes, r.Bandwidth = engine.Info.WeightBytes, bandwidth
	r.Share = float64(r.WeightBytes) * r.decode.Median / float64(c.Seqs) / bandwidth
	if c.JSON {
		return printResult(e.stdout, r.json())
	}
	return r.print(e.stdout)
}

func (c *benchCmd) check() error {
	err := cmp.Or(c.engineFlags.check(), within("-p", c.Prompt, 1, maxTokens), within("-n", c.Generate, 1, maxTokens),
		within("-r", c.Runs, 1, 1000), within("--seqs", c.Seqs, 1, 256)) // as many as an engine takes
	if err == nil && c.Ctx > 0 && c.Ctx < c.need() {
		err = usagef("--ctx is %d, but -p and -n need %d: leave it out", c.Ctx, c.need())
	}
	return err
}

// need is how many positions a sequence takes. One more token is generated than is timed: the first belongs to the
// prefill.
func (c *benchCmd) need() int { return c.Prompt + c.Generate + 1 }

// spread is a figure over several runs.
type spread struct{ Median, Min, Max float64 }

func spreadOf(runs []float64) spread {
	slices.Sort(runs)
	n := len(runs)
	return spread{(runs[(n-1)/2] + runs[n/2]) / 2, runs[0], runs[n-1]}
}

type benchResult struct {
	Model           string
	Threads, Seqs   int
	prompt, n       int
	prefill, decode spread // tokens per second, of all sequences together
	WeightBytes     int64
	Bandwidth       float64 // bytes per second
	Share           float64 // of it, by the weights that decoding reads; above 1 where they stay in a cache
	ActorsShare     float64
}

func (c *benchCmd) measure(ctx context.Context, engine *actors.Engine) (*benchResult, error) {
	random := rand.New(rand.NewPCG(1, uint64(c.Prompt)))
	var prefill, decode []float64
	var before actors.Steps
	for run := range c.Runs + 1 {
		if run == 1 {
			before = engine.Steps() // the first run is for warming up
		}
		p, d, err := c.once(ctx, engine, random)
		if err != nil {
			return nil, err
		}
		if run > 0 {
			prefill, decode = append(prefill, p), append(decode, d)
		}
	}
	return &benchResult{prompt: c.Prompt, n: c.Generate, prefill: spreadOf(prefill), decode: spreadOf(decode),
		ActorsShare: engine.Steps().Sub(before).ActorsShare()}, nil
}

// once lets every sequence answer a prompt of its own that no cache has seen. It returns tokens per second in
// prefill, until the last sequence has its first token, and in decoding, from then until the last one ends.
func (c *benchCmd) once(ctx context.Context, engine *actors.Engine, random *rand.Rand) (
	prefill, decode float64, err error) {
	usages, errs := make([]actors.Usage, c.Seqs), make([]error, c.Seqs)
	var wg sync.WaitGroup
	for i := range c.Seqs {
		tokens := make([]int32, c.Prompt)
		for j := range tokens {
			tokens[j] = int32(random.IntN(engine.Info.Vocab))
		}
		wg.Go(func() { usages[i], errs[i] = c.answer(ctx, engine, tokens) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, 0, err
	}
	if c.Seqs == 1 {
		u := usages[0]
		return rate(c.Prompt, u.Prefill), rate(c.Generate, u.Decode), nil
	}
	var first, last time.Duration
	for _, u := range usages {
		first = max(first, u.Queue+u.Prefill)
		last = max(last, u.Queue+u.Prefill+u.Decode)
	}
	return rate(c.Seqs*c.Prompt, first), rate(c.Seqs*c.Generate, last-first), nil
}

func (c *benchCmd) answer(ctx context.Context, engine *actors.Engine, tokens []int32) (actors.Usage, error) {
	p := sample.Defaults()
	p.Temp = 0
	stream, err := engine.Generate(actors.Request{Tokens: tokens, MaxTokens: c.Generate + 1, Sampling: p, IgnoreEOG: true})
	if err != nil {
		return actors.Usage{}, err
	}
	defer stream.Close()
	var ev actors.Event
	for {
		err := stream.Next(ctx, &ev)
		if errors.Is(err, io.EOF) {
			return stream.Usage(), nil
		}
		if err != nil {
			return actors.Usage{}, err
		}
	}
}

// json is the result under names that carry its sizes. They are part of the interface.
func (r *benchResult) json() map[string]any {
	pp, tg := "pp"+strconv.Itoa(r.prompt), "tg"+strconv.Itoa(r.n)
	return map[string]any{
		"model": r.Model, "threads": r.Threads, "seqs": r.Seqs,
		pp: r.prefill.Median, pp + "_min": r.prefill.Min, pp + "_max": r.prefill.Max,
		tg: r.decode.Median, tg + "_min": r.decode.Min, tg + "_max": r.decode.Max,
		"weights_bytes_per_token": r.WeightBytes, "read_bandwidth": r.Bandwidth,
		"share": r.Share, "actors_share": r.ActorsShare,
	}
}

func (r *benchResult) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, `%s, %s, %s

prefill of %d tokens     %9.1f tokens/s   (%.1f to %.1f)
generating %d tokens     %9.1f tokens/s   (%.1f to %.1f)
weights read by a token  %9.1f MB
memory read bandwidth    %9.1f GB/s
share of it              %9.1f %%         (above 100 %% where the weights stay in a cache)
actors' share of a step  %9.2f %%
`, printable(r.Model), count(r.Threads, "thread"), count(r.Seqs, "sequence"),
		r.prompt, r.prefill.Median, r.prefill.Min, r.prefill.Max,
		r.n, r.decode.Median, r.decode.Min, r.decode.Max,
		float64(r.WeightBytes)/1e6, r.Bandwidth/1e9, 100*r.Share, 100*r.ActorsShare)
	return err
}
