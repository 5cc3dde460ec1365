package actors

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/place"
)

// Plan is what would be done with a model.
type Plan struct {
	Info      Info
	Model     place.Model
	Slabs     int64          // bytes through which weights travel
	Memory    backend.Memory // of the device: its weights, KV and scratch
	Available int64          // bytes that the machine has for all
}

// PlanFor plans one model for a device, and starts nothing. Device and file stay the caller's.
func PlanFor(m *Model, d backend.Device) (*Plan, error) {
	specs, plan, err := planAll([]Model{*m}, d.Traits(), nil)
	if err != nil {
		return nil, err
	}
	p := &Plan{Info: specs[0].info, Model: plan.Models[0], Slabs: plan.SlabBytes(), Available: mem.Available()}
	p.Memory, err = measure(specs[0], d)
	p.Memory.Weights = p.Model.Weights
	return p, err
}

// measure finds what the device needs besides weights: it compiles the model without any.
func measure(s *spec, d backend.Device) (backend.Memory, error) {
	layout := s.layout
	if layout.InPlace == nil && d.Traits().Memory == backend.HostMemory {
		layout.Slots, layout.InPlace = nil, s.inPlace()
	}
	m, err := d.Compile(s.bound, layout)
	if err != nil {
		return backend.Memory{}, err
	}
	return m.Memory(), m.Close()
}

// planAll finds out about the models and plans them. edit, if there is one, changes the plan of each.
func planAll(models []Model, traits backend.Traits, edit func(*ir.Bound, *place.Model)) ([]*spec, *place.Plan, error) {
	specs := make([]*spec, len(models))
	asks := make([]place.Ask, len(models))
	for i := range models {
		m := &models[i]
		var err error
		if specs[i], err = specOf(m); err != nil {
			return nil, nil, err
		}
		asks[i] = place.Ask{Program: specs[i].bound, InPlace: m.NoRepack, Weights: m.Weights, KV: m.KV,
			Context: m.Context, Sequences: m.Sequences, Blocks: m.Blocks, Rows: m.Rows}
		if m.Weights > 0 && !traits.Shares {
			return nil, nil, errors.New("a budget for weights: on this device all of them are resident, leave it out")
		}
	}
	machine := place.Machine{Memory: available(specs, traits), Flight: traits.Flight}
	if traits.Shares {
		place.Fit(asks, machine)
	}
	plan, err := place.Make(asks, machine)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range specs {
		if edit != nil {
			edit(s.bound, &plan.Models[i])
		}
		s.settle(&plan.Models[i], &models[i], traits)
	}
	distinguish(specs)
	return specs, plan, nil
}

// available is what KV caches may take: of a device's own memory what weights, padded there, and steps leave.
func available(specs []*spec, t backend.Traits) int64 {
	const steps = 1 << 30
	if t.Free == 0 {
		return mem.Available()
	}
	left := t.Free - steps
	for _, s := range specs {
		left -= s.info.WeightBytes + s.info.WeightBytes/8
	}
	return max(left, 0)
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
