package actors

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/place"
)

// ShapePlan is the plan of a model without a file.
type ShapePlan struct {
	place.Model
	Scratch int64 // bytes that steps take besides weights and KV cache
}

// PlanShape plans a model without a file, of which only the program and the types of its weights are known, for a
// device with so many bytes of the program's memory; 0: those that are free.
func PlanShape(m *Model, bound *ir.Bound, d backend.Device, memory int64) (*ShapePlan, error) {
	traits := d.Traits()
	devices := devicesOf(traits)
	asks := []place.Ask{{Program: bound, Devices: devices, KV: m.KV, Context: m.Context, Sequences: m.Sequences,
		Layers: m.Layers, Budgets: make([]int64, len(devices))}}
	machine := machineOf(devices, cmp.Or(memory, mem.Available()), traits.Flight)
	plan, err := settled([]Model{*m}, asks, machine, traits.Shares)
	if err != nil {
		return nil, err
	}
	scratch, err := scratchOf(&plan.Models[0], bound, d)
	if err != nil {
		return nil, err
	}
	if len(devices) == 1 { // a card has memory set aside for it
		if machine.Memory[0] -= scratch; machine.Memory[0] <= 0 {
			return nil, fmt.Errorf("%d MiB for what steps compute with are more than there is: ask for a shorter context",
				scratch>>20)
		}
	}
	if beyondCache(&asks[0], &plan.Models[0], machine) {
		if plan, err = place.Make(asks, machine); err != nil {
			return nil, err
		}
	}
	return &ShapePlan{plan.Models[0], scratch}, nil
}

// scratchOf is what steps of a planned model take of a device, as Plan has it. Compiling reads no weight: one area
// stands for all of them.
func scratchOf(m *place.Model, bound *ir.Bound, d backend.Device) (_ int64, err error) {
	largest := int64(0)
	for i := range bound.Weights {
		largest = max(largest, bound.Size(ir.Ref(i)))
	}
	area, err := mem.Alloc(largest)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, mem.Free(area)) }()
	blank := make(backend.InPlace, len(bound.Weights))
	for i := range blank {
		blank[i] = area[:bound.Size(ir.Ref(i))]
	}
	layout := m.Layout
	layout.Flight, bound.Piece = d.Traits().Flight, m.Piece
	memory, err := measured(bound, layout, d, func() backend.InPlace { return blank })
	return memory.Scratch, err
}
