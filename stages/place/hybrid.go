package place

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// A device with a Host computes the last layers and the end of a program, and the host what comes before them: so
// values go to the device and never have to be waited for on their way back, the largest matrix of all is where memory
// is fast, and the embedding, of which a row is looked up, takes none of it.
//
// Or it computes all but the experts of some layers, which are most of a mixture's bytes and of which a row needs few:
// values go to and fro, which costs tenths of a millisecond a layer.

// Auto, as a number of layers, leaves it to what is predicted to be sooner.
const Auto = -1

// What is predicted: the time of such a request.
const (
	usualPrompt = 512
	usualAnswer = 128
)

// Settle decides how many layers the device computes, where that was left open. If all have room there, it computes
// all. Else what has no room comes to the device for each token, or as many layers as have room are computed there and
// the others by the host, or the host computes the experts of as few layers as it must: whatever answers a usual
// request sooner.
func (a *Ask) Settle(m Machine, s Speeds) {
	if a.Layers != Auto {
		return
	}
	a.Layers = 0
	if a.Device.Host == nil || a.VRAM == 0 || a.Own() <= a.VRAM {
		return
	}
	layers, experts := *a, *a
	for layers.Layers = LayersOf(a.Program.Program) - 1; layers.Layers > 0; layers.Layers-- {
		if layers.divisible(layers.Layers) && layers.Own() <= a.VRAM {
			break
		}
	}
	for n := Mixtures(a.Program.Program); experts.Experts < n && experts.Own() > a.VRAM; {
		experts.Experts++
	}
	took := a.request(m, s)
	for _, some := range []*Ask{&layers, &experts} {
		if !some.divided() || some.Own() > a.VRAM {
			continue
		}
		if t := some.request(m, s); t < took {
			a.Layers, a.Experts, took = some.Layers, some.Experts, t
		}
	}
}

// request is the seconds of a usual request, one alone; infinite if there is no plan for it.
func (a *Ask) request(m Machine, s Speeds) (seconds float64) {
	plan, err := Make([]Ask{*a}, m)
	if err != nil {
		return math.Inf(1)
	}
	x := &plan.Models[0]
	chunk := min(usualPrompt, x.Rows)
	device, host := x.cost(a.Program, float64(chunk))
	own, beside := x.reading(a.Program, &s, device, host, float64(chunk), 0)
	return (own+beside)*usualPrompt/float64(chunk) + usualAnswer/x.Expect(a.Program, s, 1, 0).Decode
}

// divided says whether the host of the device computes some layers, or experts of some.
func (a *Ask) divided() bool {
	return a.Device.Host != nil &&
		(a.Experts > 0 || a.Layers > 0 && a.Layers < LayersOf(a.Program.Program))
}

// onHost says whether the host computes a segment.
func (a *Ask) onHost(segment int) bool {
	s := &a.Program.Segments[segment]
	switch {
	case !a.divided() || s.Kind.Ends():
		return false
	case a.Experts > 0:
		return s.Kind == ir.SegExperts && mixturesIn(a.Program.Segments[:segment]) < a.Experts
	}
	return s.Layer < LayersOf(a.Program.Program)-a.Layers
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

// onDevice says the contrary.
func (a *Ask) onDevice(segment int) bool { return !a.onHost(segment) }

// hostSegments are those that the host computes; nil: none.
func (a *Ask) hostSegments() (segments []int) {
	for s := range a.Program.Segments {
		if a.onHost(s) {
			segments = append(segments, s)
		}
	}
	return segments
}

// traits are those of who computes a segment.
func (a *Ask) traits(segment int) *backend.Traits {
	if a.onHost(segment) {
		return a.Device.Host
	}
	return &a.Device
}

// Own is what weights take of a device's own memory if all that it computes from stays there.
func (a *Ask) Own() int64 { return a.some(0, a.onDevice).total }

// HostLayers is how many of a program's layers the host of the device computes: the first ones.
func (m *Model) HostLayers(p *ir.Program) (n int) {
	for _, s := range m.Layout.OnHost {
		if p.Segments[s].Kind != ir.SegExperts {
			n = max(n, p.Segments[s].Layer+1)
		}
	}
	return n
}

// HostExperts is of how many layers it computes nothing but the experts: the first ones that have any.
func (m *Model) HostExperts(p *ir.Program) (n int) {
	if m.HostLayers(p) > 0 {
		return 0
	}
	return len(m.Layout.OnHost)
}

// crossings is how many values go from one side to the other in a step.
func (m *Model) crossings(p *ir.Bound) (n int) {
	onHost := m.Layout.OnHost
	if onHost == nil {
		return 0
	}
	writer, crossed := make([]int, len(p.Widths)), make([]bool, len(p.Widths))
	for s := range p.Segments {
		for _, v := range p.Only([]int{s}).Taken() {
			if !crossed[v] && slices.Contains(onHost, writer[v]) != slices.Contains(onHost, s) {
				crossed[v] = true
				n++
			}
		}
		for i := range p.Segments[s].Nodes {
			writer[p.Segments[s].Nodes[i].Out] = s
		}
	}
	return n
}

// LayersOf is how many a program has.
func LayersOf(p *ir.Program) (n int) {
	for i := range p.Segments {
		n = max(n, p.Segments[i].Layer+1)
	}
	return n
}

// hosted is what they take of the program's memory for segments that are computed there.
func (a *Ask) hosted() int64 {
	if !a.divided() {
		return 0
	}
	bytes := a.some(0, a.onHost).resident()
	if a.Weights > 0 {
		bytes = min(bytes, a.Weights)
	}
	return bytes
}

// resident is what groups take that are all there but tables.
func (t *sorted) resident() int64 {
	bytes := t.total
	for _, g := range t.tables {
		bytes -= t.homes[g]
	}
	return bytes
}

// divide gives every group a home where it is computed with. What the device computes from stays there. Of what the
// host does, what does not fit is streamed; tables are looked up in the file, where a row is read as fast.
func (a *Ask) divide(m *Model) error {
	own := a.Own()
	if a.VRAM > 0 && own > a.VRAM {
		return a.tooMany(own)
	}
	t := a.some(0, a.onHost)
	if need := t.resident() + a.slabs(); a.Experts > 0 && a.Weights > 0 && need > a.Weights {
		const mib = 1 << 20
		return fmt.Errorf("the experts of %d layers need %d MiB of RAM, %d MiB are available: have the host compute fewer, or "+
			"give it more", a.Experts, (need+mib-1)/mib, a.Weights/mib)
	}
	always, free := a.slabs()+t.vectors, int64(math.MaxInt64)
	if a.Weights > 0 {
		free = a.Weights - always
	}
	pinned := t.pin(free - t.shelves())
	if pinned == nil {
		return refusal("", a.Weights, always+t.shelves()+t.least())
	}
	t.shelve(free - pinned.bytes)
	t.build(m, pinned)
	for g := range m.Homes {
		if h := &m.Homes[g]; h.Tier == Device && a.onHost(h.Group.Segment) {
			h.Tier = Host
		}
	}
	m.Host, m.Weights = m.Weights-own, own
	return nil
}

// tooMany says how many layers there is room for.
func (a *Ask) tooMany(own int64) error {
	const mib = 1 << 20
	few := *a
	if a.Experts > 0 {
		for few.Experts++; few.Experts <= Mixtures(a.Program.Program); few.Experts++ {
			if few.Own() <= a.VRAM {
				return fmt.Errorf("all but the experts of %d layers need %d MiB of VRAM for their weights, %d MiB are available: "+
					"have the host compute those of at least %d layers", a.Experts, (own+mib-1)/mib, a.VRAM/mib, few.Experts)
			}
		}
		few.Experts--
		return fmt.Errorf("all but the experts need %d MiB of VRAM for their weights, %d MiB are available: ask for fewer "+
			"layers on the device instead", (few.Own()+mib-1)/mib, a.VRAM/mib)
	}
	for few.Layers = a.Layers - 1; few.Layers > 0; few.Layers-- {
		if few.checkLayers() == nil && few.Own() <= a.VRAM {
			return fmt.Errorf("%d layers on the device need %d MiB of VRAM for their weights, %d MiB are available: ask for at "+
				"most %d layers", a.Layers, (own+mib-1)/mib, a.VRAM/mib, few.Layers)
		}
	}
	few.Layers = 1
	return fmt.Errorf("the last layer and the head need %d MiB of VRAM for their weights, %d MiB are available: compute on "+
		"the processor alone", (few.Own()+mib-1)/mib, a.VRAM/mib)
}

// checkLayers refuses a border between layers of which one attends to what another one stores.
func (a *Ask) checkLayers() error {
	if !a.divided() || a.Experts > 0 || a.divisible(a.Layers) {
		return nil
	}
	less, more := a.Layers-1, a.Layers+1
	for !a.divisible(less) {
		less--
	}
	for !a.divisible(more) {
		more++
	}
	return fmt.Errorf("%d layers on the device: some of them attend to what others store: ask for %d or %d", a.Layers,
		less, more)
}

// divisible says whether the last n layers can be computed apart from the others. None can, and all.
func (a *Ask) divisible(n int) bool {
	first, filler := LayersOf(a.Program.Program)-n, make([]int, len(a.Program.KV))
	for i := range a.Program.Segments {
		s := &a.Program.Segments[i]
		for j := range s.Nodes {
			switch n := &s.Nodes[j]; {
			case n.Op != ir.Attend:
			case len(n.In) > 1:
				filler[n.Attend.KV] = s.Layer
			case filler[n.Attend.KV] < first && s.Layer >= first:
				return false
			}
		}
	}
	return true
}
