package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Model says which model is run, and how. The zero value of a field that has a default stands for it.
type Model struct {
	Name string         // by which it is known; default: as its file says
	File *gguf.File     // the house closes it
	KV   backend.KVType // default: KVF16

	// Context is how many positions one request may hold. Default: what the model was trained for, as memory allows.
	Context int
	// Sequences is how many requests are computed at once. Default: 32.
	Sequences int
	// Blocks is the size of the KV cache. Default: one full context, and more for several sequences as memory allows.
	Blocks int
	// Rows is the most rows of a step. Default: 512.
	Rows int
	// Record, if set, is where the token trace goes (docs/traces.md); RecordIDsOnly leaves out texts.
	Record        io.Writer
	RecordIDsOnly bool
	// Weights is how many bytes weights may take, and the slots and slabs that they come through. What does not fit is
	// read from the file again for each step. Default: all are resident, if they fit the machine.
	Weights int64
	// VRAM is how many bytes weights may take of a device's own memory, with the slots that they come through. What does
	// not fit waits in the program's, as far as Weights goes. Default: all are there, if they fit.
	VRAM int64
	// NoRepack computes from the file's own bytes, where they are mapped: no loading, no memory for weights, slower.
	NoRepack bool
}

// HouseConfig says which models are run, and on what.
type HouseConfig struct {
	Models []Model        // at least one; of equal names the later ones get a number
	Device backend.Device // where they run; the house closes it
	Log    zerolog.Logger
	// Progress, if set, is called from time to time while weights are loaded, and at the end.
	Progress func(done, total int64)
	// Trace, if set, gets spans as a trace for Perfetto, from the start until the house is closed.
	Trace io.Writer

	hooks
}

// hooks are for tests; a nil one stands for what is usual.
type hooks struct {
	plan func(*ir.Bound, *place.Model) // changes what was planned
	disk tiers.OpenDisk
	late time.Duration // how long a step waits for a drive
}

// Config is a house of one model.
type Config struct {
	Model
	Device   backend.Device
	Log      zerolog.Logger
	Progress func(done, total int64)
	Trace    io.Writer

	hooks
}

const streamCapacity = batch.Window + 2

// Start opens a house of one model. To close its engine closes the house.
func Start(ctx context.Context, c Config) (*Engine, error) {
	h, err := Open(ctx, HouseConfig{
		Models: []Model{c.Model}, Device: c.Device, Log: c.Log, Progress: c.Progress, Trace: c.Trace, hooks: c.hooks,
	})
	if err != nil {
		return nil, err
	}
	return h.engines[0], nil
}

// Open validates the models, starts the actors, loads the weights and returns when all can serve. On an error, files
// and device are closed too.
func Open(ctx context.Context, c HouseConfig) (*House, error) {
	h, err := prepare(&c)
	if err != nil {
		errs := []error{err, c.Device.Close()}
		for _, m := range c.Models {
			errs = append(errs, m.File.Close())
		}
		return nil, errors.Join(errs...)
	}
	if c.Trace != nil {
		h.startRecorder(c.Trace)
	}
	at := h.wiring.house
	r := &root{house: h, loaded: map[*guest]bool{}}
	err = h.system.Start(run.Spec{
		Name: at.Address.Id, Capacity: h.wiring.graph.Capacity(at), Children: h.system.Supervisor(h.gaveUp),
		Produce: func(int) actor.Actor { return r },
	})
	if err != nil {
		return nil, errors.Join(err, h.recorder.end(), h.free())
	}
	if err := h.await(ctx, c.Progress); err != nil {
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.Close(cut) // the first error says more
		return nil, err
	}
	return h, nil
}

// prepare does all that can fail before an actor runs.
func prepare(c *HouseConfig) (*House, error) {
	specs, plan, err := planAll(c.Models, c.Device.Traits(), c.plan)
	if err != nil {
		return nil, err
	}
	// Reads round outwards to the disk's blocks.
	slabs, err := pin.New(place.Slabs, plan.Slab+uring.Slack)
	if err != nil {
		return nil, err
	}
	return newHouse(c, specs, slabs), nil
}

// distinguish numbers models of the same name from the second one on: a, a-2, a-3.
func distinguish(specs []*spec) {
	taken := map[string]bool{}
	for _, s := range specs {
		name := s.info.Name
		for n := 2; taken[s.info.Name]; n++ {
			s.info.Name = fmt.Sprintf("%s-%d", name, n)
		}
		taken[s.info.Name] = true
	}
}

// pathOf is a name as a part of an actor's path: another one for each name.
func pathOf(name string) string { return url.PathEscape(name) }

// await waits until the models are loaded.
func (h *House) await(ctx context.Context, progress func(done, total int64)) error {
	tick := ticker(progress != nil)
	defer tick.Stop()
	for {
		select {
		case <-h.health.ready:
			if progress != nil {
				progress(h.Loaded())
			}
			return h.health.get()
		case <-tick.C:
			progress(h.Loaded())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
