package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/report"
	"github.com/sluice-ai/sluice/storage/gguf"
)

type benchCmd struct {
	engineFlags
	Prompt   []int    `short:"p" default:"512" placeholder:"N" help:"Tokens of the prompt; several, such as 128,512, are measured in turn. Default: 512."`
	Generate int      `short:"n" default:"128" placeholder:"N" help:"Tokens to generate after it. Default: 128."`
	Depth    []int    `default:"0" placeholder:"N" help:"Positions that the cache holds before the prompt; several, such as 0,8192, in turn. Default: 0."`
	Runs     int      `short:"r" default:"5" placeholder:"N" help:"Runs; medians are reported. One more warms up. Default: 5."`
	Seqs     int      `default:"1" placeholder:"N" help:"Sequences at once. Default: 1."`
	Compare  []string `sep:"none" placeholder:"COMMAND" help:"Another engine's command, run in turns with ours. {model} {threads} {prompt} {tokens} {depth} {seqs} are filled in; it prints JSON with prefill_tps and decode_tps, or llama-bench's. NAME: before it names it. May be repeated."`
	forceFlag
	traceFlag
	JSON     bool   `name:"json" xor:"format" help:"Print JSON."`
	Markdown bool   `xor:"format" help:"Print Markdown."`
	SVG      string `name:"svg" placeholder:"FILE" help:"Draw a picture of the results too."`

	picture *safefile.File // nil without one
}

func (benchCmd) examples() [2]string {
	return [2]string{
		`sluice bench`,
		`sluice bench -m model.gguf -t 2 -p 512 --depth 0,8192 --compare "llama-bench -m {model} -t {threads} -p {prompt} -n {tokens} -d {depth} -r 1 -o json"`,
	}
}

func (c *benchCmd) Run(e *env) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	if c.Model, err = e.locate(c.Model); err != nil { // peers are given a path
		return err
	}
	if c.SVG != "" {
		var err error
		if c.picture, err = e.create(c.SVG, c.Force, c.Model); err != nil {
			return err
		}
		defer c.picture.Close()
	}
	spans, done, err := c.traceFlag.open(e, c.Force, c.Model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	c.Threads = cmp.Or(c.Threads, runtime.NumCPU())
	result := &report.Bench{Machine: processorName(&cpuid.CPU), Commit: built(), Threads: c.Threads, Seqs: c.Seqs,
		Cache: c.KV, NoRepack: c.NoRepack}
	began := e.now()
	var device backend.Device
	var file *gguf.File
	engine, err := c.start(ctx, e, func(cfg *actors.Config) {
		device, file = cfg.Device, cfg.File
		traits := cfg.Device.Traits()
		result.Device, result.Beside = cfg.Device.Name(), traits.Memory == backend.OwnMemory && !traits.Times
		cfg.Trace = spans
		cfg.Sequences, cfg.Context = c.Seqs, cmp.Or(c.Ctx, c.need())
		cfg.Blocks = c.Seqs * (blocks(cfg.Context) + blocks(slices.Max(c.Prompt)+c.Generate))
	})
	if err != nil {
		return err
	}
	defer shut(engine)
	result.Model, result.LoadSeconds = printable(engine.Info.Name), e.now().Sub(began).Seconds()
	_, result.WeightBytes = engine.Loaded()
	result.PeakBytes = peakMemory(e.root)
	if engine.Embeds() {
		if slices.Max(c.Depth) > 0 {
			return usagef("--depth: %s makes vectors of texts, which nothing stands before: leave it out", result.Model)
		}
		c.Generate = 0
	}
	if err := c.relate(e, engine, file, device, result); err != nil {
		return err
	}
	m := &measurement{benchCmd: c, e: e, engine: engine, result: result, device: device,
		halves: c.FastPrefill || halves(engine.Info.Program)}
	if err := m.all(ctx); err != nil {
		return err
	}
	return c.print(e, result)
}

// halves says whether most of a model's weights are floats, which a GPU multiplies in half precision.
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

// relate notes what a plan expects where not all weights are on one device, what it has copied to one, and how fast
// that can be.
func (c *benchCmd) relate(e *env, engine *actors.Engine, file *gguf.File, d backend.Device, r *report.Bench) error {
	plan := engine.Plan()
	if !plan.Parts[0].Streams() && plan.Parts[0].Layout.OnHost == nil || c.Generate == 0 {
		return nil
	}
	measured, err := recall(e, file.Part(0), d)
	if err != nil {
		return err
	}
	speeds := measured.planned(d)
	x := plan.Expect(engine.Info.Program, speeds, c.Seqs, c.Depth[0]+c.Prompt[0])
	r.Expected, r.Copied, r.Bus = x.Decode, x.Copied, speeds.Bus
	if c.Depth[0]+c.Prompt[0] < place.FirstTokens { // a longer prompt reads most experts
		r.ExpectedCold = x.First
	}
	return nil
}

func (c *benchCmd) check() error {
	err := cmp.Or(c.engineFlags.check(), eachWithin("-p", c.Prompt, 1), eachWithin("--depth", c.Depth, 0),
		within("-n", c.Generate, 1, maxTokens), within("-r", c.Runs, 1, 1000),
		within("--seqs", c.Seqs, 1, 256)) // as many as an engine takes
	if err == nil && c.Ctx > 0 && c.Ctx < c.need() {
		err = usagef("--ctx is %d, but -p, -n and --depth need %d: leave it out", c.Ctx, c.need())
	}
	if err == nil {
		err = c.checkPeers()
	}
	return err
}

func eachWithin(flag string, list []int, least int) error {
	if len(list) == 0 {
		return usagef("%s is empty: want a number of tokens, or several such as 128,512", flag)
	}
	return cmp.Or(within(flag, slices.Min(list), least, maxTokens), within(flag, slices.Max(list), least, maxTokens))
}

// need is how many positions a sequence takes. One more token is generated than is timed: the first belongs to the
// prefill.
func (c *benchCmd) need() int { return slices.Max(c.Depth) + slices.Max(c.Prompt) + c.Generate + 1 }

// blocks is how many blocks of the cache hold n positions, and a started one.
func blocks(n int) int { return n/64 + 2 }

// print draws the picture last: what was measured is not lost with it.
func (c *benchCmd) print(e *env, b *report.Bench) error {
	write := b.Text
	switch {
	case c.JSON:
		write = func(w io.Writer) error { return printResult(w, b) }
	case c.Markdown:
		write = b.Markdown
	}
	if err := write(e.stdout); err != nil || c.picture == nil {
		return err
	}
	err := b.SVG(c.picture)
	if err == nil {
		err = c.picture.Commit()
	}
	return unfit(c.SVG, err)
}

// peakMemory is the most that this process has held so far, in bytes; 0 where the system does not say.
func peakMemory(root fs.FS) int64 {
	f, err := root.Open("proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
