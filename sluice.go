// Package sluice runs large language models inside a Go program, on the machine that it runs on.
//
// Open loads a model: a GGUF file, a folder of safetensors, a model that sluice pull has got, or, without a name, the
// small one that is part of the package. Generate answers a conversation or goes on with a text, Stream gives the
// answer as it comes, Embed makes vectors of texts, Close ends it all. A model may be asked from any number of
// goroutines at once: their requests share steps, and no answer depends on what else is computed.
//
//	model, err := sluice.Open(ctx, "Qwen/Qwen3-8B-GGUF", sluice.Options{})
//	if err != nil {
//		return err
//	}
//	defer model.Close()
//	answer, err := model.Generate(ctx, sluice.Request{Messages: []sluice.Message{sluice.User("Why is the sky blue?")}})
//
// The package writes to no stream and no log. Programs in other languages have the same by the C library of
// cmd/libsluice, or over HTTP by sluice serve.
package sluice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/devices"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
)

// Options say how a model is run. The zero value is right for most.
type Options struct {
	// Context is how many tokens one conversation may hold. Default: what the model was trained for, as memory allows.
	Context int
	// Memory is how many bytes weights may take of this machine's memory; what does not fit is read from the file for
	// each step. Default: all of them, if they fit.
	Memory int64
	// VRAM is the same for the memory of a GPU; what does not fit is copied there for each step.
	VRAM int64
	// Device says what computes: "cpu", "cuda", "cuda:1", "vulkan", "auto" and others, as --device of the program has
	// them. Default: a GPU with memory of its own where there is one, else the processor.
	Device string
	// Threads is how many threads of the processor compute. Default: one for each core.
	Threads int
	// KV is the type of the cache of keys and values: "f16", "q8", "q4" and others, as --kv of the program has them.
	// Fewer bits take less memory, and lose more of long texts. Default: "f16".
	KV string
	// Sequences is how many requests are computed at once; others wait. Default: 32.
	Sequences int
	// Progress, if set, is told how many bytes of weights have been loaded, from time to time and at the end.
	Progress func(done, total int64)
}

// Model is a model that is loaded. Its methods may be called from any goroutine.
type Model struct{ engine *actors.Engine }

// Open loads a model. The name is a GGUF file, the folder of a model, a model of the store of sluice pull, or empty:
// then it is the small model that is part of the package. It returns when the model can answer, or when ctx ends.
func Open(ctx context.Context, name string, o Options) (*Model, error) {
	kv, err := o.check()
	if err != nil {
		return nil, err
	}
	file, err := namedmodel.OpenWeights(os.LookupEnv, name)
	if err != nil {
		return nil, err
	}
	if own, err := namedmodel.AdaptersOf(os.LookupEnv, name); err != nil || len(own) > 0 {
		return nil, errors.Join(cmp.Or(err, fmt.Errorf("%s has adapters of its own (ADAPTER of its Modelfile), which the "+
			"package does not load: name the model that it is made of", name)), file.Close())
	}
	device, err := o.open()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if o.Context == 0 {
		o.Context = modelfile.Of(&file.Meta).Context
	}
	engine, err := actors.Start(ctx, actors.Config{Device: device, Model: actors.Model{File: file, KV: kv,
		Context: o.Context, Weights: o.Memory, VRAM: o.VRAM, Sequences: o.Sequences, Progress: o.Progress, Speculate: true}})
	if err != nil {
		return nil, err
	}
	return &Model{engine}, nil
}

// check refuses what no model can have, and finds the type of the cache.
func (o *Options) check() (kv backend.KV, err error) {
	const most = 1 << 31
	for _, x := range []struct {
		name  string
		value int64
	}{{"Context", int64(o.Context)}, {"Memory", o.Memory}, {"VRAM", o.VRAM}, {"Threads", int64(o.Threads)},
		{"Sequences", int64(o.Sequences)}} {
		if x.value < 0 {
			return kv, fmt.Errorf("%s is %d: want a number from 1 on, or 0 for the default", "Options."+x.name, x.value)
		}
	}
	if o.Context >= most {
		return kv, fmt.Errorf("Options.Context is %d: want less than %d tokens", o.Context, int64(most))
	}
	if o.KV == "" {
		return backend.KVF16, nil
	}
	if kv, err = backend.ParseKV(o.KV); err != nil {
		return kv, fmt.Errorf("Options.KV is %q: want %s", o.KV, backend.KVList())
	}
	return kv, nil
}

// open opens the device that was asked for, or the usual one.
func (o *Options) open() (backend.Device, error) {
	way := devices.FromEnvironment(os.LookupEnv)
	way.Threads = o.Threads
	if o.Device == "" {
		if card, _ := devices.Unasked(os.DirFS("/"), way.Best); card != nil {
			return way.Beside(card)
		}
		return way.Processor()
	}
	name, err := devices.Parse(o.Device)
	if err != nil {
		return nil, fmt.Errorf("Options.Device %w", err)
	}
	d, err := way.Open(name)
	if err != nil {
		return nil, fmt.Errorf("Options.Device is %q: %w", o.Device, err)
	}
	return d, nil
}

// Info says what a model is.
type Info struct {
	Name         string // as its file has it
	Architecture string
	Parameters   int64
	Context      int    // tokens that one conversation may hold here
	Sequences    int    // requests that are computed at once
	KV           string // the type of its cache of keys and values
	Embeds       bool   // it makes vectors of texts; else it generates text
}

// Info says what the model is.
func (m *Model) Info() Info {
	i := &m.engine.Info
	return Info{i.Name, i.Architecture, i.Parameters, i.Context, i.Sequences, i.KV.Type, m.engine.Embeds()}
}

// Close ends what is still being answered, and frees the model's memory. It may be called several times.
func (m *Model) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits for answers
	if err := m.engine.Close(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// ErrClosed is the error of a request to a model that was closed.
var ErrClosed = actors.ErrClosed
