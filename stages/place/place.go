package place

import (
	"cmp"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Tier is a kind of memory that weights can have their home in.
type Tier uint8

const (
	Device Tier = iota + 1 // the memory that a device computes from
	Host                   // the program's own, page-locked
	Disk                   // the model's file
)

var tierNames = [...]string{Device: "device", Host: "host", Disk: "disk"}

func (t Tier) String() string { return tierNames[t] }

// Ask is one model and what is asked of it. 0 stands for a default.
type Ask struct {
	Program *ir.Bound
	InPlace bool           // weights are used where the file is mapped: nothing is loaded
	Device  backend.Traits // where it is computed; none: in the program's memory
	// Weights bounds the bytes of the program's memory for weights: homes, shared slots and slabs; 0: everything is
	// resident. What does not fit is streamed, on a device where groups can share slots. Of a device with memory of its
	// own it bounds what waits there for the device, and 0 is no bound.
	Weights int64
	VRAM    int64 // bounds homes and shared slots in a device's own memory; 0: everything is resident there
	// Layers is how many are computed on a device with a Host: the last ones, with the end of the program. The others, and
	// the embedding, are computed in the program's memory. 0: all are computed on the device. Auto: Settle decides.
	Layers int
	// Experts is of how many layers the Host computes the experts, in the program's memory, where the device computes all
	// else: the first ones that have any. Then Layers is 0.
	Experts int
	KV      backend.KV

	Context   int // positions that one request may hold
	Sequences int // computed at once
	Blocks    int // of the KV cache
	Rows      int // of a step, at most
}

// Machine is what there is to place models on: one device.
type Machine struct {
	Memory int64 // bytes available to KV caches
	Host   int64 // of the program's memory, for weights that a device's own has no room for; 0: there is none
	Flight int   // steps that the device may have in flight; 0: 1
}

// Plan is where everything lies.
type Plan struct {
	Models []Model
	Slab   int // bytes through which weights travel; 0: none does
}

// Model is the plan of one model. Slots and groups are numbered as in its layout: a group that is neither in Ring nor
// in Shelves has a slot of its own, or is read where the file is mapped.
type Model struct {
	Context int // positions that one request may hold

	// The bounds of a step and of what runs at once; see batch.Limits.
	Sequences, Rows, Wanted, Beside int

	Piece   int64          // the program's: see ir.Bound
	Layout  backend.Config // what it is compiled for, on all devices
	Homes   []Home         // of all groups
	Ring    Ring
	Shelves []Shelf // by layer with experts that are streamed
	Weights int64   // bytes of homes and of shared slots, where it is computed
	apart   bool    // the device has memory of its own
	Host    int64   // bytes of homes in the program's memory, of a device that has its own, and of slots there
	KV      int64   // bytes of the cache
	HostKV  int64   // of the layers that are computed in the program's memory, of a device that has its own
}

// Apart says whether the device that computes the model has memory of its own.
func (m *Model) Apart() bool { return m.apart }

// ByTier is the bytes of weights that have their homes in each tier.
func (m *Model) ByTier() map[Tier]int64 {
	bytes := map[Tier]int64{Device: 0, Host: 0, Disk: 0}
	for i := range m.Homes {
		bytes[m.Homes[i].Tier] += m.Homes[i].Group.Bytes
	}
	return bytes
}

// Ring is slots through which dense groups go one after another, in the program's order and round again: any group
// fits any slot.
type Ring struct{ Slots, Groups []int }

// Shelf is the slots that the experts of one segment share.
type Shelf struct {
	Segment int
	Used    int   // experts of a row, at most
	Slots   []int // any expert fits any
	Groups  []int // by expert
}

// Streams says whether groups of weights share slots.
func (m *Model) Streams() bool { return len(m.Ring.Groups)+len(m.Shelves) > 0 }

// Home is where a group of weights lies when nothing moves.
type Home struct {
	Group ir.Group
	Tier  Tier
	Slot  int // of the layout: its own; below 0: it has none
}

// Brought says whether the group is brought once, before anything is computed: to a slot of its own, or to the memory
// from which it is copied to others.
func (h *Home) Brought() bool { return h.Slot >= 0 || h.Kept() }

// Kept says whether the group waits in the program's memory to be copied to slots that it shares.
func (h *Home) Kept() bool { return h.Slot < 0 && h.Tier == Host && h.Group.Use == ir.Matrix }

// Price is what it costs to bring a group to a slot that it shares, where one that is kept costs 1: drives read a fifth
// to a thirtieth as fast as buses copy, and give less while a step waits for a few groups.
func Price(kept bool) float64 {
	if kept {
		return 1
	}
	return readPrice
}

const readPrice = 16

const (
	defaultSequences = 32
	defaultRows      = 512
	leastBeside      = 16 // prefill rows beside decodes, at least
	wholeRows        = 2048
	maxLogits        = 64 << 20 // bytes of a step's logits
	leastBlocks      = 8        // of KV, however little memory there is
	spareContexts    = 4        // full contexts that the KV cache holds by default, as memory allows
)

// Make plans the models, all on the first device, or says what cannot work and what would. What was not asked for of
// the KV caches takes a quarter of the memory in all; what was asked for, as much as there is.
func Make(asks []Ask, m Machine) (*Plan, error) {
	p := &Plan{}
	free := room{m.Memory, cmp.Or(m.Host, m.Memory)}
	for i := range asks {
		free.host -= asks[i].hosted()
	}
	share := room{m.Memory / 4 / int64(len(asks)), max(free.host, 0) / 4 / int64(len(asks))}
	for i := range asks {
		model, err := asks[i].plan(free, share, max(m.Flight, 1))
		if err != nil {
			return nil, err
		}
		free = free.less(room{model.KV, model.HostKV})
		p.Models = append(p.Models, *model)
		p.Slab = max(p.Slab, asks[i].slab())
	}
	return p, nil
}

// plan fixes the sizes of one model: its cache gets at most share by default and free if asked. Each step in flight has
// asked for the positions of its rows, and so has the next one.
func (a *Ask) plan(free, share room, flight int) (*Model, error) {
	if err := a.checkLayers(); err != nil {
		return nil, err
	}
	m := &Model{Sequences: or(a.Sequences, defaultSequences)}
	layout := backend.Config{Limits: backend.Limits{KV: a.KV}}
	if layout.KV == (backend.KV{}) {
		layout.KV = backend.KVF16
	}
	c := cache{program: a.Program.Program, kv: layout.KV, sequences: min(m.Sequences, spareContexts)}
	if layout.OnHost = a.hostSegments(); layout.OnHost != nil {
		_, c.layers, c.kept = a.Program.Only(layout.OnHost).Used()
	}
	rows := a.Rows
	if rows <= 0 {
		rows = c.ease(defaultRows, flight, share)
	}
	if a.Program.Whole { // a step has room for the longest text, if that is not too long
		rows = max(rows, min(a.Program.Context, wholeRows))
	}
	m.Rows = max(rows, m.Sequences)
	m.Wanted = max(min(rows, maxLogits/4/a.Program.Vocab), m.Sequences)
	if a.Program.Whole {
		m.Wanted = m.Rows // their vectors are short
	}
	if m.Beside = max(rows/4, m.Sequences+leastBeside); a.apart() {
		m.Beside = m.Rows // a card that has fewer is not busy: it reads four prompts of 128 rows as fast as two
	}
	layout.MaxRows, layout.MaxWanted, layout.MaxSpans = m.Rows, m.Wanted, m.Sequences
	c.ahead = (flight + 1) * m.Rows
	if err := c.plan(a, m, &layout, free, share); err != nil {
		return nil, err
	}
	m.Layout, m.apart = layout, a.apart()
	return m, a.house(m)
}

// house gives every group its home.
func (a *Ask) house(m *Model) error {
	if a.divided() {
		return a.divide(m)
	}
	if a.budget() == 0 || a.InPlace {
		a.resident(m)
		return nil
	}
	return a.tiers(m)
}

// resident gives every group a home of its own.
func (a *Ask) resident(m *Model) {
	for g, group := range a.Program.On(a.Program.All()) {
		home := Home{Group: group, Tier: Device, Slot: g}
		if a.InPlace {
			home.Tier = Disk
		} else {
			m.Weights += a.Device.RoomFor(a.Program, &group, false)
		}
		m.Homes = append(m.Homes, home)
	}
}

func or(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
