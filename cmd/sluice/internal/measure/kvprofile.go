package measure

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/divergence"
	"github.com/sluice-ai/sluice/stages/kvmix"
	"github.com/sluice-ai/sluice/storage/gguf"
)

type KVProfile struct {
	compute.EngineFlags
	File  string  `short:"f" required:"" placeholder:"FILE" help:"Text to measure on, such as the model will be used for; - is standard input."`
	Bits  float64 `name:"bits" placeholder:"BITS" default:"5.5" help:"Bits of a value of the mix that is shown and measured; --kv auto:BITS makes one of any from the profile. Default: 5.5."`
	Chunk int     `short:"c" default:"1024" placeholder:"N" help:"Tokens of a chunk; the second half of each is compared. Default: 1024."`
	Most  int     `name:"chunks" default:"8" placeholder:"N" help:"Measure on the first N chunks only; 0: on all. Default: 8."`
	JSON  bool    `name:"json" help:"Print JSON: what is kept for --kv auto."`
}

func (KVProfile) Examples() [2]string {
	return [2]string{
		`sluice kv-profile -m model.gguf -f text.txt`,
		`sluice run -m model.gguf --kv auto:4.5 "Why is the sky blue?"`,
	}
}

func (c *KVProfile) Run(e *env.Env) error {
	if err := checkChunks(c.Ctx, c.Chunk, c.Most); err != nil {
		return err
	}
	if c.KV != "f16" || c.KVK+c.KVV != "" {
		return env.Usagef("kv-profile measures all types of the cache: leave out --kv, --kv-k and --kv-v")
	}
	text, err := e.ReadFile(c.File, env.MostText)
	if err != nil {
		return err
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	c.OnProcessor() // which alone shows what its caches store
	r := &profiling{c: c}
	engine, err := c.Start(ctx, e, r.observe)
	if err = cmp.Or(r.fault, err); err != nil {
		if engine != nil {
			compute.Shut(engine)
		}
		return err
	}
	defer compute.Shut(engine)
	if r.engine = engine; engine.Embeds() {
		return fmt.Errorf("%s turns texts into vectors, and keeps no cache", env.Printable(engine.Info.Name))
	}
	if r.chunks, _, err = chunksOf(engine.Vocab(), strings.TrimSuffix(string(text), "\n"), c.Chunk, c.Most); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := r.measure(ctx, e); err != nil {
		return err
	}
	path, err := compute.KeepProfile(e, r.file, &r.profile)
	if err != nil {
		return err
	}
	if c.JSON {
		return env.PrintJSON(e.Stdout, &r.profile)
	}
	drawProfile(e, &r.profile)
	_, err = fmt.Fprintf(e.Stdout, "\nkept for --kv auto in %s\n", path)
	return err
}

// profiling measures a model whose caches lose what types would lose.
type profiling struct {
	c       *KVProfile
	file    *gguf.File
	engine  *actors.Engine
	chunks  [][]int32
	caches  []ir.KVLayer
	taps    [][2]*tap // by cache: of K and of V
	errors  *kvErrors
	fault   error
	profile kvmix.Profile
}

// observe has a model's caches keep what is tapped, on a device that shows what is stored.
func (r *profiling) observe(cfg *actors.Config) {
	r.file, cfg.Speculate = cfg.File, false
	plan, err := actors.PlanFor(&cfg.Model, cfg.Device)
	if err != nil {
		r.fault = err
		return
	}
	if r.caches = plan.Info.Program.KV; len(r.caches) == 0 {
		r.fault = fmt.Errorf("%s keeps no K and V: there is nothing to measure", env.Printable(plan.Info.Name))
		return
	}
	kv := backend.KVF16
	for range r.caches {
		k, v := new(tap), new(tap)
		r.taps = append(r.taps, [2]*tap{k, v})
		kv.Layers = append(kv.Layers, backend.Format{Name: "f16", K: backend.Side{Open: backend.Half{}, Sealed: k},
			V: backend.Side{Open: backend.Half{}, Sealed: v}})
	}
	r.errors = newKVErrors(r.caches)
	cfg.KV, cfg.Sequences, cfg.Context = kv, 1, cmp.Or(cfg.Context, r.c.Chunk)
	cfg.Device = &storing{Device: cfg.Device, stored: r.errors.add}
}

// storing is a device that shows what its model stores in caches.
type storing struct {
	backend.Device
	stored func(cache, head int, key, value []float32)
}

func (s *storing) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	c.Stored = s.stored
	return s.Device.Compile(p, c)
}

// trial is one choice of types, with what it was found to lose.
type trial struct {
	forms [][2]backend.Form // by cache, of K and of V; nil: as in f16
	sum   divergence.Sum
}

// measure fills the profile.
func (r *profiling) measure(ctx context.Context, e *env.Env) error {
	bar := e.Progress("measuring")
	bar.Count = true
	defer bar.Clear()
	trials := []*trial{r.uniform(backend.KVF32)}
	for i := range r.caches {
		for side := range 2 {
			t := &trial{forms: make([][2]backend.Form, len(r.caches))}
			t.forms[i][side] = r.errors.coarse()
			trials = append(trials, t)
		}
	}
	var named []backend.KV
	for _, name := range append(backend.KVNames(), "q8/tq2") {
		k, v, _ := strings.Cut(name, "/")
		kv, err := backend.MixKV(k, cmp.Or(v, k))
		if err != nil || kv.String() != name || name == "f32" || name == "f16" {
			continue // another name of a type
		}
		named = append(named, kv)
		trials = append(trials, r.uniform(kv))
	}
	total := (len(trials) + 1 + 2) * len(r.chunks)
	done := func(n int) { bar.Show(int64(n), int64(total)) }
	if err := r.pass(ctx, trials, 0, done); err != nil {
		return err
	}
	r.fill(trials, named)
	types, err := r.profile.Choose(r.c.Bits)
	if err != nil {
		return env.Usagef("--bits: %v", err)
	}
	mix, err := backend.LayersKV("mix", types)
	if err != nil {
		return err
	}
	last := &trial{}
	for i := range r.caches {
		k, v := kept(backend.KV{Format: mix.Layers[i]})
		last.forms = append(last.forms, [2]backend.Form{k, v})
	}
	r.errors.done.Store(true)
	if err := r.pass(ctx, []*trial{last}, total-2*len(r.chunks), done); err != nil {
		return err
	}
	r.profile.Mix = r.measured(mix, types, last)
	return nil
}

// kept are the forms that full blocks are kept in.
func kept(kv backend.KV) (k, v backend.Form) { return kv.K.Kept(), kv.V.Kept() }

// uniform is a trial with the same forms in all caches.
func (r *profiling) uniform(kv backend.KV) *trial {
	t := &trial{}
	for range r.caches {
		k, v := kept(kv)
		t.forms = append(t.forms, [2]backend.Form{k, v})
	}
	return t
}

// pass runs each chunk in f16, and then in each trial.
func (r *profiling) pass(ctx context.Context, trials []*trial, before int, done func(n int)) error {
	half := r.c.Chunk / 2
	reference := make([]float32, (r.c.Chunk-half)*r.engine.Info.Vocab)
	run := func(chunk []int32, seen func(pos int, row, reference []float32)) error {
		before++
		defer done(before)
		return eachRow(ctx, r.engine, chunk, func(pos int, row []float32) error {
			if pos >= half && pos < len(chunk)-1 {
				seen(pos, row, reference[(pos-half)*len(row):][:len(row)])
			}
			return nil
		})
	}
	for _, chunk := range r.chunks {
		r.apply(nil)
		if err := run(chunk, func(_ int, row, reference []float32) { copy(reference, row) }); err != nil {
			return err
		}
		r.errors.paused.Store(true)
		for _, t := range trials {
			r.apply(t.forms)
			err := run(chunk, func(pos int, row, reference []float32) { t.sum.Add(row, reference, chunk[pos+1]) })
			if err != nil {
				return err
			}
			t.sum.EndChunk()
		}
		r.errors.paused.Store(false)
	}
	return nil
}

// apply sets what caches lose from the next request on; nil: what f16 does.
func (r *profiling) apply(forms [][2]backend.Form) {
	for i, taps := range r.taps {
		for side, t := range taps {
			if forms == nil {
				t.as.Store(nil)
			} else {
				t.as.Store(&forms[i][side])
			}
		}
	}
}

// fill makes the profile of all trials: without any loss, of one K or V, and of named types.
func (r *profiling) fill(trials []*trial, named []backend.KV) {
	rounding := trials[0].sum.Result().KLMean // which any change brings about
	p := &r.profile
	*p = kvmix.Profile{Version: kvmix.Version, Model: r.engine.Info.Name, Tokens: trials[0].sum.Positions(),
		Types: errorTypes}
	for i, l := range r.caches {
		layer := kvmix.Layer{KVHeads: l.KVHeads, KDim: l.KDim, VDim: l.VDim}
		for side, s := range []*kvmix.Side{&layer.K, &layer.V} {
			*s = r.errors.side(i, side)
			s.KL = rounded(max(0, trials[1+2*i+side].sum.Result().KLMean-rounding))
		}
		p.Layers = append(p.Layers, layer)
	}
	for i, kv := range named {
		t := trials[1+2*len(r.caches)+i]
		k, v, both := strings.Cut(kv.String(), "/")
		if !both {
			v = k
		}
		p.Uniform = append(p.Uniform, r.measured(kv, [][2]string{{k, v}}, t))
	}
}

// measured is a trial's result.
func (r *profiling) measured(kv backend.KV, types [][2]string, t *trial) kvmix.Measured {
	k, v := kv.Shares(&ir.Program{KV: r.caches, Classes: r.engine.Info.Program.Classes})
	so := t.sum.Result()
	return kvmix.Measured{
		KV: types, Bits: rounded(kvmix.Bits(kv, r.caches)), BitsK: rounded(k.Bits()), BitsV: rounded(v.Bits()),
		KLMean: rounded(so.KLMean), KLMedian: rounded(so.KLMedian), KLP999: rounded(so.KLP999), SameTop: rounded(so.SameTop),
	}
}
