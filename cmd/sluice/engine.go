package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
)

// engineFlags are what every command that runs one model spells the same way.
type engineFlags struct {
	modelFlag
	computeFlags
}

// computeFlags say how models are run.
type computeFlags struct {
	KV       string `name:"kv" enum:"f32,f16,q8,q8_0" default:"f16" help:"Type of the KV cache: f32, f16 or q8, each half as large as the one before."`
	Ctx      int    `name:"ctx" placeholder:"N" help:"Tokens that one conversation may hold. Default: what a measurement needs, else what the model was trained for, as memory allows."`
	Threads  int    `short:"t" placeholder:"N" help:"Threads that compute. Default: one for each core."`
	NoRepack bool   `name:"no-repack" help:"Compute from the mapped file, without a copy of the weights in memory: starts at once, answers slower."`
	Log      string `name:"log" placeholder:"LEVEL" enum:",debug,info,warn,error" default:"" help:"Log to standard error from this level on: debug, info, warn, error."`
}

const (
	maxTokens  = math.MaxInt32 // of a conversation, or of anything within it
	maxThreads = 1024          // what package cpu takes
)

// within refuses a number that a flag cannot mean.
func within(flag string, n, least, most int) error {
	if n < least || n > most {
		return usagef("%s is %d: want %d to %d", flag, n, least, most)
	}
	return nil
}

func (f *computeFlags) check() error {
	return cmp.Or(within("--ctx", f.Ctx, 0, maxTokens), within("-t", f.Threads, 0, maxThreads))
}

// start loads the model, with a progress bar if a person is watching. edit may change what the flags do not say.
func (f *engineFlags) start(ctx context.Context, e *env, edit func(*actors.Config)) (*actors.Engine, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	file, err := openModel(f.Model)
	if err != nil {
		return nil, err
	}
	if len(file.Tensors) == 0 {
		err := fmt.Errorf("%s: it has no weights: sluice tokenize and detokenize can use its vocabulary", file.Name)
		return nil, errors.Join(err, file.Close())
	}
	force, _ := e.lookup("SLUICE_CPU")
	device, err := cpu.New(f.Threads, force)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("SLUICE_CPU: %w", err)
	}
	kv, _ := backend.ParseKV(f.KV) // kong has checked it
	cfg := actors.Config{File: file, Device: device, KV: kv, Context: f.Ctx, NoRepack: f.NoRepack, Log: f.logger(e)}
	if edit != nil {
		edit(&cfg)
	}
	if e.isTerminal(e.stderr) {
		bar := &loadingBar{e: e, what: "loading " + printable(file.Name), began: e.now()}
		defer bar.clear()
		cfg.Progress = bar.show
	}
	engine, err := actors.Start(ctx, cfg)
	if err == nil && f.Ctx > engine.Info.Trained {
		fmt.Fprintf(e.stderr, "sluice: --ctx is %d, but the model was trained for %d tokens: expect worse answers beyond\n",
			f.Ctx, engine.Info.Trained)
	}
	return engine, err
}

// logger writes what the engine has to say: for a person, on standard error, errors unless told otherwise.
func (f *computeFlags) logger(e *env) zerolog.Logger {
	level := zerolog.ErrorLevel
	if f.Log != "" {
		level, _ = zerolog.ParseLevel(f.Log) // kong has checked it
	}
	out := zerolog.ConsoleWriter{Out: e.stderr, TimeFormat: time.TimeOnly, NoColor: !ansi(e, e.stderr)}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}

// shut closes the engine at the end of a command, when nothing is left to wait for.
func shut(e *actors.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.Close(ctx)
}
