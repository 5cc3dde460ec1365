package actors

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// Start opens a house of one model. Closing its engine closes the house.
func Start(ctx context.Context, c Config) (*Engine, error) {
	h, err := Open(ctx, HouseConfig{
		Models: []Model{c.Model}, Device: c.Device, Log: c.Log, Trace: c.Trace, hooks: c.hooks,
	})
	if err != nil {
		return nil, err
	}
	return h.Engines()[0], nil
}

// Open starts a house. It validates the models, loads their weights and returns when all can serve. On an error, files
// and device are closed too.
func Open(ctx context.Context, c HouseConfig) (*House, error) {
	h := newHouse(&c)
	if c.Trace != nil {
		h.recorder = startRecorder(h.watch, c.Trace)
	}
	at, supervisor := h.wiring.house, h.system.Supervisor(h.gaveUp)
	r := h.tree(supervisor)
	err := h.system.Start(run.Spec{
		Name: at.Address.Id, Room: h.wiring.graph.Room(at), Children: supervisor,
		Produce: func(int) actor.Actor { return r },
	})
	if err != nil {
		return nil, errors.Join(err, h.recorder.end(), h.free(), closeFiles(c.Models))
	}
	if len(c.Models) == 0 {
		return h, nil
	}
	if _, err := h.enter(ctx, c.Models); err != nil {
		_ = h.Close(context.Background()) // no request was ever open, and the first error says more
		return nil, err
	}
	return h, nil
}

// Close stops everything: no new requests are taken, open ones may finish until ctx ends and are cut off then; after
// them the actors stop in order, and memory is freed. It returns ctx's error if requests were cut off.
func (h *House) Close(ctx context.Context) error {
	var err error
	h.closed.Do(func() { err = h.close(ctx) })
	return err
}

func (h *House) close(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	all := slices.Clone(h.tenants)
	h.mu.Unlock()
	cut := make([]error, len(all))
	var leaving sync.WaitGroup
	for i, t := range all {
		leaving.Go(func() {
			if t.stay.close() {
				cut[i] = h.part(ctx, t)
			}
			<-t.stay.over
		})
	}
	leaving.Wait()
	done := make(chan struct{})
	h.wiring.shutdown.Send(&shutdown{done})
	<-done
	errs := []error{errors.Join(cut...), h.system.Stop(h.wiring.house.Address), h.recorder.end()}
	h.system.Shutdown()
	return errors.Join(append(errs, h.free())...)
}

// free closes the device, the slabs and the sums. No actor may be left.
func (h *House) free() error {
	if h.cores != nil {
		h.cores.Part()
	}
	return errors.Join(h.device.Close(), h.slabs.Close(), h.sums.Close())
}

// Close closes the house, with all its models.
func (e *Engine) Close(ctx context.Context) error { return e.house.Close(ctx) }
