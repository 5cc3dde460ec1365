package place

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/sluice-ai/sluice/internal/ir"
)

const (
	leastRing  = 2         // slots: one is computed from while another is filled
	aheadBytes = 48 << 20  // what a ring should hold beyond what is computed from: it keeps a drive's queue full
	aheadBus   = 8 << 20   // the same of copies to a device: they begin within tenths of a millisecond
	leastShelf = 2         // slots of a layer's experts: as of a ring
	leastPiece = 256 << 10 // bytes
	alike      = 3.0 / 4   // groups of at least this share of the largest one's bytes count as of one size
)

// tiers decides which groups stay on the device and which are streamed, so that homes, shared slots and slabs keep
// within the budget and as few bytes as possible are read for each token.
//
// Vectors always stay, and matrices that rows come back to. Of the others a byte of a dense group is read for every
// token, one of an expert for some: so experts get the least first, then as many dense groups stay as fit, and what
// remains is for slots of experts, equally many in each layer. Tables stay only where all else does: a row of the file
// is read as fast.
func (a *Ask) tiers(m *Model, device int) error {
	whole, budget := a.sort(0), a.budget(device)
	if whole.total+a.beside(device) <= budget {
		a.resident(m)
		return nil
	}
	t := a.cut(m, whole)
	free := budget - a.beside(device) - t.vectors
	pinned := t.pin(free - t.shelves())
	if pinned == nil {
		return refusal(memoryName(device), budget, a.beside(device)+t.vectors+t.shelves()+t.least())
	}
	t.shelve(free - pinned.bytes)
	t.build(m, pinned)
	if device > 0 {
		return a.keep(t, m)
	}
	return nil
}

// cut sorts the groups as they are where some are streamed. The pieces of a head go round a ring with the layers'
// groups: they need not be larger.
func (a *Ask) cut(m *Model, whole *sorted) *sorted {
	m.Piece = min(max(whole.layer, leastPiece), ir.PieceBytes)
	return a.sort(m.Piece)
}

// beside is what else takes of a device's budget: the slabs, on the host.
func (a *Ask) beside(device int) int64 {
	if device > 0 || a.straight {
		return 0
	}
	return a.slabs()
}

// memoryName is what a refusal calls a budget.
func memoryName(device int) string {
	if device > 0 {
		return "VRAM"
	}
	return ""
}

// keep gives what a device has no room for a home in the program's memory: tables, which it looks up there; then
// dense groups, spread over the program, then experts, equally many of each layer. The rest is read from disk.
func (a *Ask) keep(t *sorted, m *Model) error {
	layout, host, free := &m.Layout, &m.Takes[0].Weights, int64(math.MaxInt64)
	if a.budget(0) > 0 {
		free = a.budget(0) - a.slabs()
	}
	for _, g := range t.tables {
		m.Homes[g].Tier = Host
		*host += t.homes[g]
	}
	if *host > free {
		return refusal("RAM", a.budget(0), *host+a.slabs())
	}
	for _, g := range t.waiting(m) {
		if *host+t.homes[g] <= free {
			m.Homes[g].Tier = Host
			*host += t.homes[g]
			layout.Kept = append(layout.Kept, g)
		}
	}
	slices.Sort(layout.Kept)
	return nil
}

// waiting lists the groups that share slots, those first that are worth most in memory.
func (t *sorted) waiting(m *Model) (all []int) {
	ring := m.Ring.Groups
	const stride = 0.6180339887 // of the golden section: the first n are spread evenly, whatever n is
	spread := slices.Clone(ring)
	at := func(g int) float64 {
		_, f := math.Modf(float64(slices.Index(ring, g)) * stride)
		return f
	}
	slices.SortStableFunc(spread, func(a, b int) int { return cmp.Compare(at(a), at(b)) })
	all = append(all, spread...)
	for e := 0; ; e++ {
		before := len(all)
		for _, s := range m.Shelves {
			if e < len(s.Groups) {
				all = append(all, s.Groups[e])
			}
		}
		if len(all) == before {
			return all
		}
	}
}

// memoryShare is how much of the machine's memory weights take that no budget was given for: KV caches take a quarter,
// and scratch and everything else need some.
const memoryShare = 0.65

// ownShare is the same of a device's own memory, where scratch was left out already.
const ownShare = 0.85

// ForWeights is how much of what is available weights take that no budget was given for: of a device's own memory, or
// of the program's.
func ForWeights(available int64, own bool) int64 {
	if own {
		return int64(float64(available) * ownShare)
	}
	return int64(float64(available) * memoryShare)
}

// Fit gives budgets to models that were asked for without one, if they do not fit a device's memory together: each gets
// its part of what the others leave, by its size.
func Fit(asks []Ask, m Machine) {
	for d := len(m.Memory) - 1; d >= 0; d-- { // what has no room there waits in the first one
		share := memoryShare
		if d > 0 {
			share = ownShare
		}
		divide(asks, float64(m.Memory[d])*share, func(a *Ask) *int64 { return a.bound(d) },
			func(a *Ask) int64 { return a.Need(d) })
	}
}

// bound returns where a device's budget is stored; nil if the model needs none there.
func (a *Ask) bound(device int) *int64 {
	if a.InPlace || device >= a.count() {
		return nil
	}
	for len(a.Budgets) < a.count() {
		a.Budgets = append(slices.Clip(a.Budgets), 0)
	}
	return &a.Budgets[device]
}

// Need is what weights take of a device's memory that are computed with there, or may have to wait there.
func (a *Ask) Need(device int) int64 {
	switch {
	case device > 0:
		return a.Own(device)
	case a.count() == 1:
		return a.sort(0).total + a.slabs()
	case a.divided():
		return a.some(0, a.on(0)).resident() + a.slabs()
	case a.bounded():
		return a.sort(0).total + a.slabs()
	}
	return 0
}

// divide gives budgets out of what is free to those that have none, if they need more together.
func divide(asks []Ask, free float64, budget func(*Ask) *int64, need func(*Ask) int64) {
	total, sizes := 0.0, make([]float64, len(asks))
	for i := range asks {
		switch b := budget(&asks[i]); {
		case b == nil:
		case *b > 0:
			free -= float64(*b)
		default:
			sizes[i] = float64(need(&asks[i]))
			total += sizes[i]
		}
	}
	if total <= free {
		return
	}
	for i := range asks {
		if sizes[i] > 0 {
			*budget(&asks[i]) = int64(max(1, free*sizes[i]/total))
		}
	}
}

// sorted is a program's groups by what can be done with them.
type sorted struct {
	ahead   int64 // bytes that a ring should hold beyond what is computed from
	groups  []ir.Group
	slots   []int64 // by group: the bytes of a slot that it shares
	homes   []int64 // by group: the bytes of a slot of its own
	total   int64
	vectors int64   // bytes
	layer   int64   // bytes of the largest dense group that is not of an end
	dense   []int   // groups of matrices, in program order
	layers  []layer // of experts
	tables  []int
}

// layer is the experts of one segment.
type layer struct {
	segment, used int
	groups        []int
	slot          int64 // bytes of a slot for any of them
	slots         int   // how many it gets
}

// sort lists the groups of the program as they are if large matrices are cut into pieces of so many bytes.
func (a *Ask) sort(piece int64) *sorted { return a.some(piece, func(int) bool { return true }) }

// some does the same, but sorts only the groups of those segments that in accepts.
func (a *Ask) some(piece int64, in func(segment int) bool) *sorted {
	p := *a.Program
	p.Piece = piece
	t := &sorted{groups: p.On(p.All()), ahead: aheadBytes}
	devices := a.deal()
	if least := slices.Min(devices); least > 0 && least == slices.Max(devices) {
		t.ahead = aheadBus
	}
	returned := p.Returned()
	for i := range t.groups {
		g := &t.groups[i]
		traits := a.traits(devices[g.Segment])
		t.slots = append(t.slots, traits.RoomFor(&p, g, true))
		t.homes = append(t.homes, traits.RoomFor(&p, g, false))
		if !in(g.Segment) {
			continue
		}
		t.total += t.homes[i]
		switch {
		case g.Use == ir.Vector || slices.ContainsFunc(g.Weights, func(r ir.Ref) bool { return returned[r] }):
			t.vectors += t.homes[i]
		case g.Use == ir.Table:
			t.tables = append(t.tables, i)
		case g.Expert == ir.Dense:
			t.dense = append(t.dense, i)
			if !p.Segments[g.Segment].Kind.Ends() {
				t.layer = max(t.layer, g.Bytes) // as pieces are measured
			}
		default:
			if n := len(t.layers); n == 0 || t.layers[n-1].segment != g.Segment {
				t.layers = append(t.layers, layer{segment: g.Segment, used: used(&p, g.Segment)})
			}
			l := &t.layers[len(t.layers)-1]
			l.groups, l.slot = append(l.groups, i), max(l.slot, t.slots[i])
		}
	}
	return t
}

// used is how many experts of a segment a row goes to, at most.
func used(p *ir.Bound, segment int) int {
	for i := range p.Segments[segment].Nodes {
		if n := &p.Segments[segment].Nodes[i]; n.Op == ir.Experts {
			return n.Experts.Used
		}
	}
	return 0
}

// pinning is which dense groups stay, and the ring of those that do not.
type pinning struct {
	streamed []int // in program order
	slots    int   // of the ring
	slot     int64 // bytes of each
	bytes    int64 // of what stays, and of the ring's slots
	read     int64 // bytes that are read for each token
	cost     int64 // read, and the bytes by which the ring is too small: the drive will have to wait
}

// pin is the pinning that takes at most free bytes and costs least for each token; nil: none fits.
//
// A ring's slots are as large as the largest group that goes through it, so groups of about one size are streamed
// before smaller ones. They are spread over the program: while the drive reads ahead, what stays is computed
// between.
func (t *sorted) pin(free int64) (best *pinning) {
	for p := range t.pinnings(free) {
		if p.bytes <= free && (best == nil || p.cost < best.cost) {
			best = p
		}
	}
	return best
}

// least is how few bytes any pinning takes.
func (t *sorted) least() int64 { return t.smallest().bytes }

// smallest is the pinning that takes the fewest bytes.
func (t *sorted) smallest() (least *pinning) {
	for p := range t.pinnings(0) {
		if least == nil || p.bytes < least.bytes {
			least = p
		}
	}
	return least
}

// pinnings are the candidates: all groups stay, or more and more groups are streamed, beginning with those of one
// size or another.
func (t *sorted) pinnings(free int64) iter.Seq[*pinning] {
	return func(yield func(*pinning) bool) {
		if !yield(t.stream(nil, 0, free)) {
			return
		}
		for sizes := t.sizes(); len(sizes) > 0; sizes = sizes[1:] {
			for n := leastRing + 1; n <= len(slices.Concat(sizes...)); n++ {
				if !yield(t.stream(sizes, n, free)) {
					return
				}
			}
		}
	}
}

// sizes groups the dense groups by about how large they are, the largest first.
func (t *sorted) sizes() (all [][]int) {
	rest := slices.Clone(t.dense)
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(t.slots[b], t.slots[a]) })
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && float64(t.slots[rest[n]]) >= alike*float64(t.slots[rest[0]]) {
			n++
		}
		all, rest = append(all, slices.Sorted(slices.Values(rest[:n]))), rest[n:]
	}
	return all
}

// stream is the pinning in which n groups are streamed: all of the first sizes and, evenly spread, some of the last
// one. The ring has as many slots as it should, or fewer if there is no room.
func (t *sorted) stream(sizes [][]int, n int, free int64) *pinning {
	p := &pinning{}
	for _, class := range sizes {
		take := min(len(class), n-len(p.streamed))
		for i := range take {
			p.streamed = append(p.streamed, class[(2*i+1)*len(class)/(2*take)])
		}
	}
	slices.Sort(p.streamed)
	for _, g := range p.streamed {
		p.slot = max(p.slot, t.slots[g])
		p.read += t.homes[g]
	}
	p.bytes = -p.read
	for _, g := range t.dense {
		p.bytes += t.homes[g]
	}
	if p.cost = p.read; n == 0 {
		return p
	}
	full := 1 + (t.ahead+p.slot-1)/p.slot
	room := (free - p.bytes) / p.slot
	p.slots = int(max(leastRing, min(full, int64(n-1), room)))
	p.bytes += int64(p.slots) * p.slot
	p.cost += max(0, t.ahead-int64(p.slots-1)*p.slot)
	return p
}

// shelve gives slots to the layers of experts: equally many each, as far as the experts of a layer go, and one more to
// the first ones, as long as there is room.
func (t *sorted) shelve(free int64) {
	each := func(l *layer, n int) int { return min(n, len(l.groups)) }
	most := 0
	for i := range t.layers {
		most = max(most, len(t.layers[i].groups))
	}
	n := sort.Search(most, func(n int) bool {
		bytes := int64(0)
		for i := range t.layers {
			bytes += int64(each(&t.layers[i], n+1)) * t.layers[i].slot
		}
		return bytes > free
	})
	for i := range t.layers {
		l := &t.layers[i]
		l.slots = each(l, n)
		free -= int64(l.slots) * l.slot
	}
	for i := range t.layers {
		l := &t.layers[i]
		if n < len(l.groups) && l.slot <= free {
			l.slots++
			free -= l.slot
		}
	}
}

// build fills in the model's layout and homes: first the slots of what stays, then those of the ring, then those of
// experts.
func (t *sorted) build(m *Model, p *pinning) {
	layout := &m.Layout
	for _, g := range t.groups {
		m.Homes = append(m.Homes, Home{Group: g, Device: m.Devices[g.Segment], Tier: Device})
	}
	stream := func(groups []int) {
		for _, g := range groups {
			m.Homes[g].Tier, m.Homes[g].Slot = Disk, -1
		}
	}
	stream(t.tables)
	stream(p.streamed)
	for _, l := range t.layers {
		if l.slots < len(l.groups) {
			stream(l.groups)
		}
	}
	for g := range m.Homes {
		if h := &m.Homes[g]; h.Tier == Device {
			h.Slot = len(layout.Slots)
			layout.Slots = append(layout.Slots, []int{g})
			m.Takes[h.Device].Weights += t.homes[g]
		}
	}
	share := func(groups []int, n int, bytes int64) (slots []int) {
		for range n {
			slots = append(slots, len(layout.Slots))
			layout.Slots = append(layout.Slots, groups)
			m.Takes[m.Homes[groups[0]].Device].Weights += bytes
		}
		return slots
	}
	if len(p.streamed) > 0 {
		m.Ring = Ring{Groups: p.streamed, Slots: share(p.streamed, p.slots, p.slot)}
	}
	for _, l := range t.layers {
		if l.slots < len(l.groups) {
			shelf := Shelf{Segment: l.segment, Used: l.used, Groups: l.groups, Slots: share(l.groups, l.slots, l.slot)}
			m.Shelves = append(m.Shelves, shelf)
		}
	}
}

// refusal is the error for a budget that is too small, with the least that would do.
func refusal(of string, weights, least int64) error {
	const mib = 1 << 20
	what := map[string]string{
		"":     "for weights are too few: what always stays, slabs and the slots that weights stream through need",
		"VRAM": "of VRAM for weights are too few: what always stays and the slots that weights stream through need",
		"RAM":  "of RAM for weights are too few: what the device looks up there, and slabs, need",
	}
	return fmt.Errorf("%.1f MiB %s %d MiB: ask for at least %[3]dM", float64(weights)/mib, what[of], (least+mib-1)/mib)
}

// shelves is the bytes of the fewest slots that experts need.
func (t *sorted) shelves() (bytes int64) {
	for _, l := range t.layers {
		bytes += int64(min(leastShelf, len(l.groups))) * l.slot
	}
	return bytes
}
