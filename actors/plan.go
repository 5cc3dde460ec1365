package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/place"
)

// Plan says where a model's weights would lie and how much memory it would take, if it were loaded.
type Plan struct {
	Info      Info
	Model     place.Model
	Slabs     int64          // bytes of the staging buffers through which weights travel
	Memory    backend.Memory // on the device: weights, KV cache and scratch
	Available int64          // bytes of memory for models: the devices' own, if Apart, else the machine's
	Apart     bool           // the devices have memory of their own
	Traits    backend.Traits // of the device
	Besides   backend.Memory // of the host, for a tower or an encoder: weights, and rows as scratch; zero: neither
	Draft     *Plan          // of its draft model, whose slabs are the same; nil: it has none
	Heads     bool           // it is the plan of a head, which takes the model's hidden states
}

// PlanFor plans one model for a device, and starts nothing. Device and file stay the caller's.
func PlanFor(m *Model, d backend.Device) (*Plan, error) {
	all, err := fitted([]Model{*m}, d.Traits(), mem.Available(), nil)
	if err != nil {
		return nil, err
	}
	specs, plan := all.specs, all.plan
	p, err := planOf(specs[0], &plan.Models[0], d)
	if err == nil && len(specs) > 1 {
		p.Draft, err = planOf(specs[1], &plan.Models[1], d)
	}
	if err != nil {
		return nil, err
	}
	p.Slabs = plan.SlabBytes()
	return p, nil
}

// settled plans models whose budgets and layers may be left open. shares says whether groups may share slots.
func settled(models []Model, asks []place.Ask, machine place.Machine, shares bool) (*place.Plan, error) {
	if shares {
		place.Fit(asks, machine)
	}
	if err := settleLayers(models, asks, machine); err != nil {
		return nil, err
	}
	return place.Make(asks, machine)
}

// beyondCache leaves to the weights of a plan what its KV cache leaves of each device's memory, and reports whether
// they had more.
func beyondCache(a *place.Ask, m *place.Model, machine place.Machine) (changed bool) {
	for d, takes := range m.Takes {
		if takes.Bytes() > machine.Memory[d] {
			a.Budgets[d], changed = max(machine.Memory[d]-takes.KV, 1), true
		}
	}
	return changed
}

// planOf is the plan of one of the models that were planned together, without slabs.
func planOf(s *spec, m *place.Model, d backend.Device) (p *Plan, err error) {
	p = &Plan{Info: s.info, Model: *m, Available: mem.Available(), Heads: s.head, Besides: s.besides()}
	if p.Traits = d.Traits(); p.Traits.Memory == backend.OwnMemory && m.Apart() {
		p.Apart, p.Available = true, 0
		for _, d := range devicesOf(p.Traits)[1:] {
			p.Available += d.Free
		}
	}
	p.Memory, err = measure(s, d)
	if p.Memory.Weights = p.Model.Host().Weights; p.Apart {
		p.Memory.Weights = p.Model.Beyond().Weights
	}
	return p, err
}

// measure returns how much memory the device needs besides weights.
func measure(s *spec, d backend.Device) (backend.Memory, error) {
	return measured(s.bound, s.layout, d, s.inPlace)
}

// measured compiles a program without uploading weights, and returns how much memory the device needs besides them.
func measured(bound *ir.Bound, layout backend.Config, d backend.Device, inPlace func() backend.InPlace) (
	backend.Memory, error) {
	if layout.InPlace() == nil && d.Traits().Memory == backend.HostMemory {
		layout.Slots, layout.Weights = nil, inPlace()
	}
	layout.Kept = nil // groups kept in host memory cost the device nothing
	if layout.Devices != nil {
		layout.Slots, layout.Weights = nil, inPlace() // for devices that compute from host memory
	}
	layout.Counted = true
	m, err := d.Compile(bound, layout)
	if err != nil {
		return backend.Memory{}, err
	}
	return m.Memory(), m.Close()
}

// devicesOf returns the devices that a plan is for, the host first. A device with memory of its own has a host that
// does not compute, unless its traits list the devices.
func devicesOf(t backend.Traits) []backend.Traits {
	switch {
	case t.Devices != nil:
		return t.Devices
	case t.Memory == backend.OwnMemory:
		return []backend.Traits{{Memory: backend.HostMemory}, t}
	}
	return []backend.Traits{t}
}

// machineOf returns the memory that devices have for models; memory is that of the host.
func machineOf(devices []backend.Traits, memory int64, flight int) place.Machine {
	const steps = 1 << 30 // bytes left free for what steps take
	m := place.Machine{Flight: flight}
	for _, d := range devices {
		bytes := memory
		if d.Free > 0 {
			bytes = max(d.Free-steps, 0)
		}
		m.Memory = append(m.Memory, bytes)
	}
	return m
}

// littleMemory is how many free bytes are so few that they are said beside why a plan is refused: no budget helps.
const littleMemory = 256 << 20

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

// planAll reads what the models' files say and plans the models together, for a machine with so many bytes of memory.
// targets says whose draft models they are. edit, if it is not nil, changes the plan of each.
func planAll(models []Model, targets []int, traits backend.Traits, memory int64, edit func(*ir.Bound, *place.Model)) (
	[]*spec, *place.Plan, error) {
	specs := make([]*spec, len(models))
	asks, devices := make([]place.Ask, len(models)), devicesOf(traits)
	for i := range models {
		m := &models[i]
		var err error
		if specs[i], err = specOf(m); err != nil {
			return nil, nil, err
		}
		asks[i] = place.Ask{Program: specs[i].bound, Devices: devices, InPlace: m.NoRepack, KV: m.KV, Layers: m.Layers,
			Budgets: append([]int64{m.Weights}, slices.Repeat([]int64{m.VRAM}, len(devices)-1)...), Experts: m.Experts,
			Context: m.Context, Sequences: m.Sequences, Blocks: m.Blocks, Rows: m.Rows, KVHost: m.KVHost,
			KVDisk: m.Kept.bytes(), Adapters: m.adaptersOn(devices)}
		if err := fitBesides(specs[i], m, &asks[i]); err != nil {
			return nil, nil, err
		}
		besides := specs[i].besides()
		memory -= m.KVHost + m.adapterMemory() + besides.Weights + besides.Scratch + place.Files(m.Kept.bytes())
		if err := m.fits(specs[i].bound.Program, traits, devices); err != nil {
			return nil, nil, err
		}
	}
	if err := fitDrafts(specs, asks, targets); err != nil {
		return nil, nil, err
	}
	for i, s := range specs {
		memory -= models[i].hiddenBytes(s.heard())
	}
	if memory <= 0 {
		return nil, nil, fmt.Errorf("the memory for blocks that KV caches have no room for is %d MiB more than there is: "+
			"ask for less (--kv-host)", -memory>>20)
	}
	machine := machineOf(devices, memory, traits.Flight)
	for _, a := range asks {
		for d, bytes := range a.Adapters {
			if devices[d].Free > 0 {
				machine.Memory[d] = max(machine.Memory[d]-bytes, 0)
			}
		}
	}
	plan, err := settled(models, asks, machine, traits.Shares)
	if err == nil && shortenDrafts(plan, asks, targets) {
		plan, err = place.Make(asks, machine)
	}
	if err != nil {
		if memory < littleMemory {
			err = fmt.Errorf("%w; only %.1f MiB of this machine's memory are free for models", err, float64(memory)/(1<<20))
		}
		return nil, nil, err
	}
	for i, s := range specs {
		if edit != nil {
			edit(s.bound, &plan.Models[i])
		}
		s.settle(&plan.Models[i], &models[i], traits)
	}
	return specs, plan, nil
}

// settleLayers decides how many layers each model computes on the device, where that is left to place.Auto: it asks
// for Speeds if there is a budget of device memory.
func settleLayers(models []Model, asks []place.Ask, m place.Machine) error {
	for i := range asks {
		var s place.Speeds
		bounded := slices.ContainsFunc(asks[i].Budgets[1:], func(b int64) bool { return b > 0 })
		if asks[i].Layers == place.Auto && bounded && models[i].Speeds != nil {
			var err error
			if s, err = models[i].Speeds(); err != nil {
				return err
			}
		}
		asks[i].Settle(m, s)
	}
	return nil
}

// distinguish numbers models whose names are taken: a, a-2, a-3.
func distinguish(specs []*spec, taken map[string]bool) {
	for _, s := range specs {
		name := s.info.Name
		for n := 2; taken[s.info.Name]; n++ {
			s.info.Name = fmt.Sprintf("%s-%d", name, n)
		}
		taken[s.info.Name] = true
	}
}

// besides is the memory of the host that a tower or an encoder takes beside the model: its weights, and the rows that
// it remembers.
func (s *spec) besides() (of backend.Memory) {
	switch {
	case s.eye != nil:
		of.Weights, of.Scratch = s.eye.sight.Bytes()+s.eye.beside.Bytes(), mostSeen
	case s.ear != nil:
		of.Weights, of.Scratch = s.ear.Bytes(), mostSeen
	}
	return of
}

// fitBesides has the weights of a tower or an encoder come out of the budget for the model's. A tower that only comes
// along is left out if there is no room for it.
func fitBesides(s *spec, m *Model, a *place.Ask) error {
	bytes, name := s.besides().Weights, "tower"
	if bytes == 0 || a.Budgets[0] == 0 {
		return nil
	}
	if s.eye == nil {
		name = "encoder"
	}
	left := a.Budgets[0] - bytes
	switch err := fmt.Errorf("the "+name+"'s weights alone take %d MiB, more than the budget for weights", bytes>>20); {
	case left > 0:
		a.Budgets[0] = left
	case s.eye == nil || !m.TowerIfFits:
		return err
	default:
		err = errors.Join(err, s.eye.close())
		s.eye, s.writer.Eyes, s.info.Blind, m.Tower = nil, nil, err.Error(), nil
	}
	return nil
}

// fits says what of a model's description a device has no use for.
func (m *Model) fits(p *ir.Program, traits backend.Traits, devices []backend.Traits) error {
	switch {
	case m.Weights > 0 && !traits.Shares:
		return errors.New("a budget for weights: on this device all of them are resident, leave it out")
	case m.Experts > 0 && place.Mixtures(p) == 0:
		return errors.New("experts for the host of a device: this model has none, leave it out")
	case (m.Layers > 0 || m.Experts > 0) && (len(devices) == 1 || devices[0].Flight == 0):
		return errors.New("layers for a device with memory of its own: this one computes all of them, leave it out")
	case m.VRAM > 0 && traits.Memory != backend.OwnMemory:
		return errors.New("a budget of VRAM: this device has no memory of its own, leave it out")
	}
	return nil
}
