package place

import (
	"fmt"
	"math"
)

// Auto, as Ask.Layers, has Settle choose the number that is predicted to be fastest.
const Auto = -1

// The request whose time Settle predicts, in tokens.
const (
	usualPrompt = 512
	usualAnswer = 128
)

// Settle decides how many layers devices beyond the host compute, where that was left open. If all have room there,
// they compute all. Else Settle takes what answers a usual request soonest: they compute all, and weights without
// room are streamed to them for each token; or they compute as many layers as have room, and the host the others; or
// the host computes the experts of as few layers as it must.
func (a *Ask) Settle(m Machine, s Speeds) {
	if a.Layers != Auto {
		return
	}
	a.Layers = 0
	if a.count() == 1 || a.Devices[0].Flight == 0 || a.fits() {
		return
	}
	layers, experts := *a, *a
	for layers.Layers = LayersOf(a.Program.Program) - 1; layers.Layers > 0; layers.Layers-- {
		if layers.checkLayers() == nil && layers.fits() {
			break
		}
	}
	for n := Mixtures(a.Program.Program); experts.Experts < n && !experts.fits(); {
		experts.Experts++
	}
	took := a.request(m, s)
	for _, some := range []*Ask{&layers, &experts} {
		if !some.divided() || !some.fits() {
			continue
		}
		if t := some.request(m, s); t < took {
			a.Layers, a.Experts, took = some.Layers, some.Experts, t
		}
	}
}

// request is the predicted seconds of a usual request that runs alone; infinite if there is no plan for it.
func (a *Ask) request(m Machine, s Speeds) float64 {
	plan, err := Make([]Ask{*a}, m)
	if err != nil {
		return math.Inf(1)
	}
	x := &plan.Models[0]
	chunk, seconds := min(usualPrompt, x.Rows), 0.0
	for _, took := range x.reading(a.Program, &s, x.cost(a.Program, float64(chunk)), float64(chunk), 0) {
		seconds += took
	}
	return seconds*usualPrompt/float64(chunk) + usualAnswer/x.Expect(a.Program, s, 1, 0).Decode
}

// resident is the bytes that all groups but tables take when they are resident.
func (t *sorted) resident() int64 {
	bytes := t.total
	for _, g := range t.tables {
		bytes -= t.homes[g]
	}
	return bytes
}

// divide gives every group a home on the device that computes with it. Groups of devices beyond the host all stay
// there. Groups of the host that do not fit are streamed; its tables are looked up in the file, where a row is read
// as fast.
func (a *Ask) divide(m *Model) error {
	if d := a.tight(); d > 0 {
		return a.tooMany(d)
	}
	if !a.divided() {
		a.resident(m)
		return nil
	}
	t, budget := a.some(0, a.on(0)), a.budget(0)
	if need := t.resident() + a.slabs(); a.Experts > 0 && budget > 0 && need > budget {
		return fmt.Errorf("the experts of %d layers need %d MiB of RAM, %d MiB are available: have the host compute fewer, or "+
			"give it more", a.Experts, mibs(need), budget>>20)
	}
	always, free := a.slabs()+t.vectors, int64(math.MaxInt64)
	if budget > 0 {
		free = budget - always
	}
	pinned := t.pin(free - t.shelves())
	if pinned == nil {
		return refusal("", budget, always+t.shelves()+t.least())
	}
	t.shelve(free - pinned.bytes)
	t.build(m, pinned)
	for g := range m.Homes {
		if h := &m.Homes[g]; h.Tier == Device && h.Device == 0 {
			h.Tier = Host
		}
	}
	return nil
}

func mibs(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// tooMany says how many layers there is room for, where a device has none for those it was dealt.
func (a *Ask) tooMany(device int) error {
	need, budget := mibs(a.Own(device)), a.budget(device)>>20
	if !a.divided() {
		return fmt.Errorf("the layers of device %d need %d MiB of VRAM for their weights, %d MiB are available: have the host "+
			"compute some", device, need, budget)
	}
	few := *a
	if a.Experts > 0 {
		for few.Experts++; few.Experts <= Mixtures(a.Program.Program); few.Experts++ {
			if few.fits() {
				return fmt.Errorf("all but the experts of %d layers need %d MiB of VRAM for their weights, %d MiB are available: "+
					"have the host compute those of at least %d layers", a.Experts, need, budget, few.Experts)
			}
		}
		few.Experts--
		return fmt.Errorf("all but the experts need %d MiB of VRAM for their weights, %d MiB are available: ask for fewer "+
			"layers on the device instead", mibs(few.Own(device)), budget)
	}
	for few.Layers = a.Layers - 1; few.Layers > 0; few.Layers-- {
		if few.checkLayers() == nil && few.fits() {
			return fmt.Errorf("%d layers on the device need %d MiB of VRAM for their weights, %d MiB are available: ask for at "+
				"most %d layers", a.Layers, need, budget, few.Layers)
		}
	}
	few.Layers = 1
	return fmt.Errorf("the last layer and the head need %d MiB of VRAM for their weights, %d MiB are available: compute on "+
		"the processor alone", mibs(few.Own(device)), budget)
}

// checkLayers refuses to divide the layers where one of them attends to what another one stores.
func (a *Ask) checkLayers() error {
	whole := func(n int) bool { return !tears(a.Program.Program, LayersOf(a.Program.Program)-n) }
	if !a.divided() || a.Experts > 0 || whole(a.Layers) {
		return nil
	}
	less, more := a.Layers-1, a.Layers+1
	for !whole(less) {
		less--
	}
	for !whole(more) {
		more++
	}
	return fmt.Errorf("%d layers on the device: some of them attend to what others store: ask for %d or %d", a.Layers,
		less, more)
}
