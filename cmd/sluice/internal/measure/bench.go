package measure

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"

	"github.com/klauspost/cpuid/v2"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/report"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

type Bench struct {
	compute.EngineFlags
	Prompt   []int    `short:"p" default:"512" placeholder:"N" help:"Tokens of the prompt; several, such as 128,512, are measured in turn. Default: 512."`
	Generate int      `short:"n" default:"128" placeholder:"N" help:"Tokens to generate after it. Default: 128."`
	Depth    []int    `default:"0" placeholder:"N" help:"Positions that the cache holds before the prompt; several, such as 0,8192, in turn. Default: 0."`
	Runs     int      `short:"r" default:"5" placeholder:"N" help:"Runs; medians are reported. One more warms up. Default: 5."`
	Seqs     int      `default:"1" placeholder:"N" help:"Sequences at once. Default: 1."`
	Adapters int      `placeholder:"N" help:"Measure with N random adapters (LoRA) of rank 16 for all matrices of all layers, another one for each sequence, in turns with runs without. Default: none."`
	Compare  []string `sep:"none" placeholder:"COMMAND" help:"Another engine's command, run in turns with ours. {model} {threads} {prompt} {tokens} {depth} {seqs} are filled in; it prints JSON with prefill_tps and decode_tps, or llama-bench's. NAME: before it names it. May be repeated."`
	env.ForceFlag
	compute.TraceFlag
	JSON     bool   `name:"json" xor:"format" help:"Print JSON."`
	Markdown bool   `xor:"format" help:"Print Markdown."`
	SVG      string `name:"svg" placeholder:"FILE" help:"Draw a picture of the results too."`

	picture *safefile.File // nil without one
}

func (Bench) Examples() [2]string {
	return [2]string{
		`sluice bench`,
		`sluice bench -m model.gguf -t 2 -p 512 --depth 0,8192 --compare "llama-bench -m {model} -t {threads} -p {prompt} -n {tokens} -d {depth} -r 1 -o json"`,
	}
}

func (c *Bench) Run(e *env.Env) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	if c.Model, err = namedmodel.Locate(e.Lookup, c.Model); err != nil { // peers need a path
		return err
	}
	if c.SVG != "" {
		var err error
		if c.picture, err = e.Create(c.SVG, c.Force, c.Model); err != nil {
			return err
		}
		defer c.picture.Close()
	}
	spans, done, err := c.TraceFlag.Open(e, c.Force, c.Model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	c.Threads = cmp.Or(c.Threads, runtime.NumCPU())
	result := &report.Bench{Machine: compute.ProcessorName(&cpuid.CPU), Commit: env.Built(), Threads: c.Threads,
		Seqs: c.Seqs, NoRepack: c.NoRepack}
	began := e.Now()
	var device backend.Device
	var file *gguf.File
	engine, err := c.Start(ctx, e, func(cfg *actors.Config) {
		device, file = cfg.Device, cfg.File
		traits := cfg.Device.Traits()
		result.Device, result.Beside = cfg.Device.Name(), traits.Memory == backend.OwnMemory && !traits.Clock
		cfg.Trace = spans
		c.adapt(&cfg.Model, file)
		cfg.Speculate = cfg.Speculate && (c.Speculate != "auto" || c.Draft != "") // answers to random prompts repeat themselves
		cfg.Sequences, cfg.Context = c.Seqs, cmp.Or(c.Ctx, c.need())
		cfg.Blocks = c.Seqs * (blocks(cfg.Context) + blocks(slices.Max(c.Prompt)+c.Generate))
	})
	if err != nil {
		return err
	}
	defer compute.Shut(engine)
	result.Cache = engine.Info.KV.Type
	result.Model, result.LoadSeconds = env.Printable(engine.Info.Name), e.Now().Sub(began).Seconds()
	_, result.WeightBytes = engine.Loaded()
	result.PeakBytes = compute.PeakMemory(e.Root)
	if engine.Embeds() {
		if err := c.reads(result.Model); err != nil {
			return err
		}
	}
	if err := c.relate(e, engine, file, device, result); err != nil {
		return err
	}
	m := &measurement{Bench: c, e: e, engine: engine, result: result, device: device,
		halves: c.FastPrefill || halves(engine.Info.Program)}
	if err := m.all(ctx); err != nil {
		return err
	}
	return c.print(e, result)
}

// reads has no answers measured, of a model that makes vectors of texts.
func (c *Bench) reads(model string) error {
	c.Generate = 0
	switch {
	case c.Adapters > 0:
		return env.Usagef("--adapters: %s makes vectors of texts, for which requests name none: leave it out", model)
	case slices.Max(c.Depth) > 0:
		return env.Usagef("--depth: %s makes vectors of texts, which nothing stands before: leave it out", model)
	}
	return nil
}

// halves says whether most of a model's weights are floats, for which a GPU multiplies in half precision.
func halves(p *ir.Bound) bool {
	floats, all := 0, 0
	for r := range p.Weights {
		w := &p.Weights[r]
		n := w.Rows * w.Cols * max(w.Experts, 1)
		if all += n; p.Types[r].Block() == 1 {
			floats += n
		}
	}
	return 2*floats > all
}

// relate adds the plan's predictions if not all weights are on one device: the expected speed, the bytes copied to a
// device, and the speed of copies.
func (c *Bench) relate(e *env.Env, engine *actors.Engine, file *gguf.File, d backend.Device, r *report.Bench) error {
	plan := engine.Plan()
	if !plan.Streams() && !plan.Divided() || c.Generate == 0 {
		return nil
	}
	measured, err := compute.Recall(e, file.Part(0), d)
	if err != nil {
		return err
	}
	speeds := measured.Planned(d)
	x := plan.Expect(engine.Info.Program, speeds, c.Seqs, c.Depth[0]+c.Prompt[0])
	r.Expected, r.Copied, r.Bus = x.Decode, x.Copied, speeds.Devices[len(speeds.Devices)-1].Bus
	if c.Depth[0]+c.Prompt[0] < place.FirstTokens { // a longer prompt reads most experts
		r.ExpectedCold = x.First
	}
	return nil
}

func (c *Bench) check() error {
	err := cmp.Or(c.EngineFlags.Check(), eachWithin("-p", c.Prompt, 1), eachWithin("--depth", c.Depth, 0),
		env.Within("-n", c.Generate, 1, env.MaxTokens), env.Within("-r", c.Runs, 1, 1000),
		env.Within("--seqs", c.Seqs, 1, 256)) // as many as an engine takes
	if err == nil && c.Ctx > 0 && c.Ctx < c.need() {
		err = env.Usagef("--ctx is %d, but -p, -n and --depth need %d: leave it out", c.Ctx, c.need())
	}
	if err == nil {
		err = c.checkAdapters()
	}
	if err == nil {
		err = c.checkPeers()
	}
	return err
}

func eachWithin(flag string, list []int, least int) error {
	if len(list) == 0 {
		return env.Usagef("%s is empty: want a number of tokens, or several such as 128,512", flag)
	}
	return cmp.Or(env.Within(flag, slices.Min(list), least, env.MaxTokens),
		env.Within(flag, slices.Max(list), least, env.MaxTokens))
}

// need is how many positions a sequence takes. One more token is generated than is timed: the first belongs to the
// prefill.
func (c *Bench) need() int { return slices.Max(c.Depth) + slices.Max(c.Prompt) + c.Generate + 1 }

// blocks is the number of cache blocks for n positions, and one more.
func blocks(n int) int { return n/64 + 2 }

// print prints the results and draws the picture last, so that a failure there loses no results.
func (c *Bench) print(e *env.Env, b *report.Bench) error {
	write := b.Text
	switch {
	case c.JSON:
		write = func(w io.Writer) error { return env.PrintResult(w, b) }
	case c.Markdown:
		write = b.Markdown
	}
	if err := write(e.Stdout); err != nil || c.picture == nil {
		return err
	}
	err := b.SVG(c.picture)
	if err == nil {
		err = c.picture.Commit()
	}
	return env.Unfit(c.SVG, err)
}
