package actors

import (
	"errors"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// In this file heads of models' own files are found and planned: see Model.Heads.

// HasHead says whether a file has a head that predicts tokens further on and can be run: see Model.Heads.
func HasHead(f *gguf.File) bool {
	_, err := bind(&Model{File: f, KV: backend.KVF16, head: true})
	return err == nil
}

// planned is models that were planned together, with their draft models behind them.
type planned struct {
	models  []Model
	targets []int // of each the index of the model that it guesses for, or -1
	specs   []*spec
	plan    *place.Plan
	less    bool // heads that need not be there were left out
}

// fitted plans models with their draft models. Where memory lacks for heads that need not be there, or weights are
// streamed with them and not without, these are left out.
func fitted(models []Model, traits backend.Traits, memory int64, edit func(*ir.Bound, *place.Model)) (planned, error) {
	var p planned
	var err error
	p.models, p.targets = withDrafts(models)
	p.specs, p.plan, err = planAll(p.models, p.targets, traits, memory, edit)
	spare := slices.ContainsFunc(p.models, func(m Model) bool { return m.Heads && m.HeadsIfFit })
	if !spare || err == nil && !p.streams() {
		return p, err
	}
	fewer := planned{less: true}
	with := slices.Clone(models)
	for i := range with {
		if m := &with[i]; m.Heads && m.HeadsIfFit {
			m.Draft, m.Heads, m.DraftOnly = nil, false, false
		}
	}
	fewer.models, fewer.targets = withDrafts(with)
	var without error
	fewer.specs, fewer.plan, without = planAll(fewer.models, fewer.targets, traits, memory, edit)
	if without == nil && (err != nil || !fewer.streams()) {
		return fewer, nil
	}
	return p, err
}

func (p *planned) streams() bool {
	return slices.ContainsFunc(p.plan.Models, func(m place.Model) bool { return m.Streams() })
}

// dropHeads closes the shares of heads that were left out.
func dropHeads(models []Model) (err error) {
	for i := range models {
		if m := &models[i]; m.Heads && m.HeadsIfFit && m.Draft != nil {
			err = errors.Join(err, m.Draft.Close())
			m.Draft, m.Heads, m.DraftOnly = nil, false, false
		}
	}
	return err
}
