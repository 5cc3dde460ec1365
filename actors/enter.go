package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
)

// In this file models enter and leave a house that runs.

// Enter loads a model into the house, planned for what the others leave of the budget. It returns when the weights are
// there; steps of the others go on meanwhile. The house closes the model's file, also on an error.
func (h *House) Enter(ctx context.Context, m Model) (*Engine, error) {
	all, err := h.enter(ctx, []Model{m})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// enter loads models that are planned together: all or none.
func (h *House) enter(ctx context.Context, models []Model) ([]*Engine, error) {
	for i := range models {
		if m := &models[i]; m.Draft != nil && !m.Speculate { // nothing is to be guessed
			if err := m.Draft.Close(); err != nil {
				return nil, errors.Join(err, closeFiles(models))
			}
			m.Draft = nil
		}
	}
	err := awaitTables(models)
	var all []*tenant
	if err == nil {
		all, err = h.admit(models)
	}
	if err != nil {
		return nil, errors.Join(err, closeFiles(models))
	}
	var engines []*Engine
	for _, t := range all {
		engines = append(engines, &Engine{t.spec.info, h, t})
	}
	for i, t := range all {
		err = errors.Join(err, h.await(ctx, t, models[i].Progress))
		if t.draft != nil {
			err = errors.Join(err, h.await(ctx, t.draft, nil))
		}
	}
	if err == nil {
		return engines, nil
	}
	cut, cancel := context.WithCancel(context.Background())
	cancel()
	for _, e := range engines {
		_ = e.Leave(cut) // the first error says more
	}
	return nil, err
}

func closeFiles(models []Model) error {
	var errs []error
	for i := range models {
		errs = append(errs, models[i].Close())
	}
	return errors.Join(errs...)
}

// admit plans models with their draft models, and takes what they need from the budget. Whatever can fail before one of
// their actors runs is done here. It returns the models alone.
func (h *House) admit(models []Model) ([]*tenant, error) {
	h.planning.Lock()
	defer h.planning.Unlock()
	if err := h.Health(); err != nil {
		return nil, err
	}
	left := h.left()
	p, err := fitted(models, lessened(h.device.Traits(), left), left[0], h.plan)
	if err != nil {
		return nil, err
	}
	if p.less {
		if err := dropHeads(models); err != nil {
			return nil, err
		}
	}
	models, targets, specs, plan := p.models, p.targets, p.specs, p.plan
	if err := h.slabs.Fit(plan.Slab); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, ErrClosed
	}
	distinguish(specs, h.names())
	for _, s := range specs {
		if bar := h.bars[keyOf(s.file)]; now().Before(bar.until) {
			return nil, bar.err
		}
	}
	var all, entering []*tenant
	for i, s := range specs {
		t := h.newTenant(s, newTrack(&models[i], s, h.device))
		if entering = append(entering, t); targets[i] < 0 {
			all = append(all, t)
		} else {
			t.target = entering[targets[i]]
			t.target.draft = t
		}
	}
	for _, t := range entering {
		t.wiring.facade.enter.Send(&enter{t.lodger}) // before anybody can send leave
	}
	h.turns.Crowd(crowded(h.device.Traits(), h.tenants))
	return all, nil
}

// await waits until a model is loaded.
func (h *House) await(ctx context.Context, t *tenant, progress func(done, total int64)) error {
	tick := ticker(progress != nil)
	defer tick.Stop()
	for {
		select {
		case <-t.health.ready:
			if progress != nil {
				progress(t.weights())
			}
			if err := t.health.get(); err != nil {
				return err
			}
			<-t.stay.here
			return nil
		case <-h.health.ready:
			return h.health.get()
		case <-tick.C:
			progress(t.weights())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Leave takes the model out of the house: no new requests are taken, open ones may finish until ctx ends and are cut
// off then; after them its actors stop in order, and all its memory is freed. It returns ctx's error if requests were
// cut off. A second call waits for the first.
func (e *Engine) Leave(ctx context.Context) error {
	if !e.stay.close() {
		<-e.stay.over
		return e.stay.err
	}
	err := e.house.part(ctx, e.tenant)
	e.house.system.ForgetTree(e.wiring.model.Address.Id)
	if d := e.draft; d != nil && d.stay.close() {
		err = errors.Join(err, e.house.part(ctx, d))
		e.house.system.ForgetTree(d.wiring.model.Address.Id)
	}
	return err
}

// part takes a tenant out, whose stay was closed before.
func (h *House) part(ctx context.Context, t *tenant) error {
	defer close(t.stay.over)
	cut := t.finish(ctx)
	h.settle(t)
	t.tellTarget()
	t.wiring.facade.leave.Send(&leave{t.lodger})
	<-t.stay.gone
	h.wiring.graph.Part(t.wiring.graph)
	h.watch.drop(&t.stats)
	h.mu.Lock()
	h.tenants = slices.DeleteFunc(h.tenants, func(o *tenant) bool { return o == t })
	h.turns.Crowd(crowded(h.device.Traits(), h.tenants))
	h.mu.Unlock()
	var paths []string
	for i := range t.spec.file.Parts() {
		part := t.spec.file.Part(i)
		for n := range 1 + len(part.Copies) {
			paths = append(paths, part.Copy(n).Path)
		}
	}
	t.stay.err = errors.Join(cut, h.sums.Forget(paths...), t.spec.file.Close(), t.spec.eye.close(), t.spec.ear.close(),
		t.caches.free())
	t.track.close()
	return t.stay.err
}

// settling is how long a model that leaves waits until its blocks are in files.
const settling = 5 * time.Second

// settle waits until cached blocks of a model that is about to leave are in files.
func (h *House) settle(t *tenant) {
	if t.caches.kept.shelf == nil || h.Health() != nil {
		return
	}
	select {
	case <-t.health.ready:
	default:
		return // it was never there
	}
	if t.health.get() != nil {
		return
	}
	m, late := &settle{make(chan struct{})}, make(chan struct{})
	timer := after(settling, func() { close(late) })
	defer timer.Stop()
	t.wiring.facade.settle.Send(m)
	select {
	case <-m.done:
	case <-h.health.ready:
	case <-late:
		t.log.Warn().Str("model", t.spec.info.Name).Msg("some cached prompts were not written to disk in time")
	}
}

// awaitTables waits until what is looked up in the files of models is there, and not only what is read from them: a
// house must not wait while it plans.
func awaitTables(models []Model) error {
	for i := range models {
		m := &models[i]
		if m.File.Content() == "" {
			continue
		}
		bound, err := bind(m)
		if err != nil {
			return err
		}
		for r, t := range bound.Tensors {
			if m.NoRepack || bound.Weights[r].Use&ir.Table != 0 {
				if err := m.File.Await(&m.File.Tensors[t]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
