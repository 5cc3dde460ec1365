package place

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// The host is the first device, and computes the first layers: then values go only from it to others, and no step
// waits for a way back; the largest matrix of all, the head, is where memory is fast; and the embedding, of which a
// row is looked up, takes no fast memory. Devices beyond the host get consecutive layers.
//
// Or the host computes the experts of some layers alone, which are most of a mixture's bytes and of which a row
// needs few: values go to and fro, which costs tenths of a millisecond a layer.

var alone = backend.Traits{Memory: backend.HostMemory} // traits of the host where none were given

// count is how many devices there are.
func (a *Ask) count() int { return max(len(a.Devices), 1) }

// traits are a device's properties.
func (a *Ask) traits(device int) *backend.Traits {
	if len(a.Devices) == 0 {
		return &alone
	}
	return &a.Devices[device]
}

// budget is the bytes for weights on a device; 0: there is no bound.
func (a *Ask) budget(device int) int64 {
	if device < len(a.Budgets) {
		return a.Budgets[device]
	}
	return 0
}

// bounded says whether a device beyond the host has a budget.
func (a *Ask) bounded() bool {
	return slices.ContainsFunc(a.Budgets[min(1, len(a.Budgets)):], func(b int64) bool { return b > 0 })
}

// divided says whether the host computes a part of the model, and other devices the rest.
func (a *Ask) divided() bool {
	return a.count() > 1 && a.Devices[0].Flight > 0 &&
		(a.Experts > 0 || a.Layers > 0 && a.Layers < LayersOf(a.Program.Program))
}

// deal returns the device of each segment.
func (a *Ask) deal() []int {
	p := a.Program.Program
	devices := make([]int, len(p.Segments))
	if a.count() == 1 || a.lacks() {
		return devices
	}
	starts := a.starts()
	for s := range devices {
		x := &p.Segments[s]
		switch {
		case x.Kind.Ends():
			devices[s] = a.count() - 1
		case a.divided() && a.Experts > 0 && x.Kind == ir.SegExperts && mixturesIn(p.Segments[:s]) < a.Experts:
		case a.divided() && a.Experts == 0 && x.Layer < starts[0]:
		default:
			for devices[s] = 1; devices[s] < len(starts) && x.Layer >= starts[devices[s]]; {
				devices[s]++
			}
		}
	}
	return devices
}

// lacks says whether a device beyond the host cannot compute the program: then the host computes all of it.
func (a *Ask) lacks() bool {
	return a.Devices[0].Flight > 0 && backend.Missing(a.Devices[1:], a.Program.Program) != nil
}

// starts are the first layers of the devices beyond the host. Each device gets a part of the layers in proportion to
// its memory, but layers that attend to one cache stay together.
func (a *Ask) starts() []int {
	p, first := a.Program.Program, 0
	if a.divided() && a.Experts == 0 {
		first = LayersOf(p) - a.Layers
	}
	starts, memory, total := []int{first}, 0.0, 0.0
	for d := 1; d < a.count(); d++ {
		total += a.size(d)
	}
	for d := 1; d < a.count()-1; d++ {
		memory += a.size(d)
		at := first + int(float64(LayersOf(p)-first)*memory/total+0.5)
		for at > starts[d-1] && tears(p, at) {
			at--
		}
		starts = append(starts, at)
	}
	return starts
}

// size is the memory of a device beyond the host, by which it gets its part of the layers.
func (a *Ask) size(device int) float64 {
	if budget := a.budget(device); budget > 0 {
		return float64(budget)
	}
	return float64(max(a.Devices[device].Free, 1))
}

// tears says whether a layer from this one on attends to what a layer before it stores.
func tears(p *ir.Program, layer int) bool {
	sides := make([]int, len(p.Segments))
	for s := range sides {
		if p.Segments[s].Layer >= layer {
			sides[s] = 1
		}
	}
	_, torn := backend.Torn(p, sides)
	return torn
}

// on returns a function that says whether a device computes a segment.
func (a *Ask) on(device int) func(segment int) bool {
	devices := a.deal()
	return func(segment int) bool { return devices[segment] == device }
}

// holders are the devices of each KV layer and of each recurrent state.
func (a *Ask) holders(devices []int) (layers, states []int) {
	layers, states = make([]int, len(a.Program.KV)), make([]int, len(a.Program.States))
	for s := range a.Program.Segments {
		for i := range a.Program.Segments[s].Nodes {
			n := &a.Program.Segments[s].Nodes[i]
			if n.Op == ir.Attend {
				layers[n.Attend.KV] = devices[s]
			}
			if n.Op.KeepsState() {
				states[n.State] = devices[s]
			}
		}
	}
	return layers, states
}

// Own is the bytes of a device's memory that weights take if all that it computes from stays there.
func (a *Ask) Own(device int) int64 { return a.some(0, a.on(device)).total }

// fits says whether all that devices beyond the host compute from has room there.
func (a *Ask) fits() bool { return a.tight() == 0 }

// tight is a device beyond the host that has no room for all that it computes from; 0: there is none.
func (a *Ask) tight() int {
	for d := 1; d < a.count(); d++ {
		if a.budget(d) > 0 && a.Own(d) > a.budget(d) {
			return d
		}
	}
	return 0
}

// settled is the bytes of a device's memory that weights take before caches get any: all weights beyond the host,
// and on a host that computes beside others all but tables; at most the budget.
func (a *Ask) settled(device int) (bytes int64) {
	switch {
	case device >= a.count():
		return 0
	case device > 0:
		bytes = a.Own(device)
	case a.divided():
		bytes = a.some(0, a.on(0)).resident()
	}
	if budget := a.budget(device); budget > 0 {
		bytes = min(bytes, budget)
	}
	return bytes
}

// Mixtures is how many layers of a program have experts.
func Mixtures(p *ir.Program) int { return mixturesIn(p.Segments) }

func mixturesIn(all []ir.Segment) (n int) {
	for i := range all {
		if all[i].Kind == ir.SegExperts {
			n++
		}
	}
	return n
}

// LayersOf is the number of layers of a program.
func LayersOf(p *ir.Program) (n int) {
	for i := range p.Segments {
		n = max(n, p.Segments[i].Layer+1)
	}
	return n
}

// HostLayers is how many of a program's layers the host computes beside other devices: the first ones.
func (m *Model) HostLayers(p *ir.Program) (n int) {
	for s, d := range m.Layout.Devices {
		if d == 0 && p.Segments[s].Kind != ir.SegExperts {
			n = max(n, p.Segments[s].Layer+1)
		}
	}
	return n
}

// HostExperts is the number of layers of which the host computes nothing but the experts: the first ones that have
// any.
func (m *Model) HostExperts(p *ir.Program) (n int) {
	if m.HostLayers(p) > 0 {
		return 0
	}
	for _, d := range m.Layout.Devices {
		if d == 0 {
			n++
		}
	}
	return n
}
