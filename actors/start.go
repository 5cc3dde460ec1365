package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/mem"
)

// Start opens a house of one model. To close its engine closes the house.
func Start(ctx context.Context, c Config) (*Engine, error) {
	h, err := Open(ctx, HouseConfig{
		Models: []Model{c.Model}, Device: c.Device, Log: c.Log, Progress: c.Progress, Trace: c.Trace, hooks: c.hooks,
	})
	if err != nil {
		return nil, err
	}
	return h.Engines()[0], nil
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
		h.recorder = startRecorder(h.watch, c.Trace)
	}
	at := h.wiring.house
	r := h.tree()
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
	memory := mem.Available()
	if c.Memory > 0 {
		memory = min(memory, c.Memory)
	}
	specs, plan, err := planAll(c.Models, c.Device.Traits(), memory, c.plan)
	if err != nil {
		return nil, err
	}
	tapes := make([]*tape, len(specs))
	for i, s := range specs {
		if tapes[i], err = newTape(&c.Models[i], s); err != nil {
			return nil, fmt.Errorf("the token trace: %w", err)
		}
	}
	slabs, err := tiers.NewSlabs(plan)
	if err != nil {
		return nil, err
	}
	return newHouse(c, specs, tapes, slabs), nil
}

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
