package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/arch"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/pin"
)

// Config says what an engine runs, and on what. The zero value of a field that has a default stands for it.
type Config struct {
	File   *gguf.File     // the model; the engine closes it
	Device backend.Device // where it runs; the engine closes it
	Log    zerolog.Logger
	KV     backend.KVType // default: KVF16

	// Context is how many positions one request may hold. Default: what the model was trained for, as memory allows.
	Context int
	// Sequences is how many requests are computed at once. Default: 32.
	Sequences int
	// Blocks is the size of the KV cache. Default: one full context, and more for several sequences as memory allows.
	Blocks int
	// Rows is the most rows of a step. Default: 512.
	Rows int
	// NoRepack computes from the file's own bytes, where they are mapped: no loading, no memory for weights, slower.
	NoRepack bool
	// Progress, if set, is called from time to time while weights are loaded, and at the end.
	Progress func(done, total int64)
}

const streamCapacity = batch.Window + 2

// Start validates the model, starts the actors, loads the weights and returns when the engine can serve. On an
// error, File and Device are closed too.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	e, err := prepare(&cfg)
	if err != nil {
		return nil, errors.Join(err, cfg.Device.Close(), cfg.File.Close())
	}
	at := e.wiring.places.engine
	err = e.system.Start(run.Spec{
		Name: at.Address.Id, Capacity: e.wiring.graph.Capacity(at), Children: e.system.Supervisor(e.gaveUp),
		Produce: func(int) actor.Actor { return &root{core: e.core, out: e.wiring.root, health: e.health} },
	})
	if err != nil {
		return nil, errors.Join(err, e.free())
	}
	if err := e.await(ctx, cfg.Progress); err != nil {
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Close(cut) // the first error says more
		return nil, err
	}
	return e, nil
}

// prepare does all that can fail before an actor runs.
func prepare(cfg *Config) (*Engine, error) {
	k := &core{file: cfg.File, backend: cfg.Device}
	var err error
	if k.vocab, err = token.New(&cfg.File.Meta); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.File.Name, err)
	}
	if k.bound, err = bind(cfg); err != nil {
		return nil, err
	}
	k.groups = k.bound.On(k.bound.All())
	if have, want := k.vocab.Size(), k.bound.Vocab; have > want {
		return nil, fmt.Errorf("%s: the vocabulary has %d tokens, but the model computes logits for %d: convert it again",
			cfg.File.Name, have, want)
	}
	if cfg.NoRepack {
		for _, i := range k.bound.Tensors {
			k.layout.InPlace = append(k.layout.InPlace, k.file.Bytes(&k.file.Tensors[i]))
		}
	}
	if err := k.plan(cfg); err != nil {
		return nil, err
	}
	info, template, err := describe(k)
	if err != nil {
		return nil, err
	}
	k.template = template
	if k.slabs, err = pin.New(slabCount, k.slabBytes); err != nil {
		return nil, err
	}
	k.system, k.log = run.NewSystem(cfg.Log), cfg.Log
	k.turns = run.NewTurns(k.backend.Traits().Crowded, batch.Window/4) // waiting must not use up a client's credit
	k.wiring = wire(k.system, k.turns)
	e := &Engine{core: k, Info: info, health: newHealth(), empty: make(chan struct{})}
	return e, nil
}

// bind records the model's program and finds its weights in the file.
func bind(cfg *Config) (*ir.Bound, error) {
	f := cfg.File
	has := func(name string) bool { _, ok := f.Tensor(name); return ok }
	program, err := arch.Record(&f.Meta, has, arch.Options{Context: cfg.Context})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	tensors := make([]ir.Tensor, len(f.Tensors))
	for i, t := range f.Tensors {
		tensors[i] = ir.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}
	}
	bound, err := ir.Bind(program, tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return bound, nil
}

// await waits until the model is loaded.
func (e *Engine) await(ctx context.Context, progress func(done, total int64)) error {
	tick := ticker(progress != nil)
	defer tick.Stop()
	for {
		select {
		case <-e.health.ready:
			if progress != nil {
				progress(e.Loaded())
			}
			return e.health.get()
		case <-tick.C:
			progress(e.Loaded())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
