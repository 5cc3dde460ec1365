package place

import (
	"slices"

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
	InPlace bool // weights are used where the file is mapped: nothing is loaded
	// Devices are those that may compute it. The first one is the host: it has the program's memory, where weights wait
	// for the others, and computes only if it has a Flight, or is the only one. None: the host alone.
	Devices []backend.Traits
	// Budgets bounds bytes of weights, by device: homes and shared slots, and of the host's memory slabs and what waits
	// there for others. 0, or none: everything is resident there. What does not fit is streamed, where groups can share
	// slots.
	Budgets []int64
	// Layers is how many layers the devices beyond the host compute: the last ones, with the end of the program. The
	// others, and the embedding, are computed by the host. 0: all are computed beyond it. Auto: Settle decides.
	Layers int
	// Experts is the number of layers whose experts the host computes, while other devices compute all else: the
	// first layers that have experts. Then Layers is 0.
	Experts int
	KV      backend.KV

	Context   int // positions that one request may hold
	Sequences int // computed at once
	Blocks    int // of the KV cache
	Rows      int // of a step, at most

	KVHost int64 // bytes of the host's memory for blocks that caches have no room for; not counted in Machine.Memory
	// Adapters is bytes of memory for adapters, by device; not counted there either. nil: the model takes none.
	Adapters []int64
	// KVDisk is bytes of files for blocks of caches. The memory that these take (Files) is not counted there either.
	KVDisk int64

	straight bool // nothing goes through slabs
}

// Machine is what there is to place models on.
type Machine struct {
	Memory []int64 // bytes available, by device: the program's memory first
	Flight int     // steps that may be in flight; 0: 1
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
	Layout  backend.Config // limits, slots and devices that the program is compiled for
	Devices []int          // by segment: who computes it
	Takes   []Takes        // by device: what it takes of its memory
	Spilled []int          // by cache class: blocks in the host's memory that caches have no room for
	Kept    []int          // by cache class: blocks that are kept in files; nil: there are none
	Homes   []Home         // of all groups
	Ring    Ring
	Shelves []Shelf // by layer with experts that are streamed
	sides   []side  // by device
}

// side is where a device is.
type side struct {
	own  bool // it has memory of its own
	away bool // it is on another machine
}

// Takes is what a model takes of a device's memory, in bytes.
type Takes struct {
	Weights int64 // homes, shared slots, and what waits there for other devices
	KV      int64
	Spilled int64 // blocks that caches have no room for, those on their way to files, books of these, and adapters
}

// Bytes is all of it.
func (t Takes) Bytes() int64 { return t.Weights + t.KV + t.Spilled }

// Host is what the model takes of the program's memory.
func (m *Model) Host() Takes { return m.Takes[0] }

// Beyond is what it takes of the memory of all other devices.
func (m *Model) Beyond() (t Takes) {
	for _, x := range m.Takes[1:] {
		t.Weights, t.KV = t.Weights+x.Weights, t.KV+x.KV
	}
	return t
}

// Apart says whether devices beyond the host compute some of it.
func (m *Model) Apart() bool { return slices.Max(m.Devices) > 0 }

// Divided says whether several devices compute it.
func (m *Model) Divided() bool { return m.Layout.Devices != nil }

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
	Group  ir.Group
	Device int  // that computes with it
	Tier   Tier // where it lies
	Slot   int  // of the layout: its own; below 0: it has none
}

// Brought says whether the group is brought once, before anything is computed: to a slot of its own, or to the memory
// from which it is copied to others.
func (h *Home) Brought() bool { return h.Slot >= 0 || h.Kept() }

// Kept says whether the group waits in the program's memory to be copied to slots that it shares.
func (h *Home) Kept() bool { return h.Slot < 0 && h.Tier == Host && h.Group.Use == ir.Matrix }

// Price is the relative cost of bringing a group to a slot that it shares: 1 for a group that is kept in memory.
// Drives read a fifth to a thirtieth as fast as buses copy, and give less while a step waits for a few groups.
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

// Make plans the models, or says what cannot work and what would. KV caches whose sizes were not asked for share a
// quarter of each device's memory; one that was asked for may have all that is free.
func Make(asks []Ask, m Machine) (*Plan, error) {
	p := &Plan{}
	free, share := slices.Clone(room(m.Memory)), make(room, len(m.Memory))
	for d := range free {
		for i := range asks {
			free[d] -= asks[i].settled(d)
		}
		free[d] = max(free[d], 0)
		share[d] = free[d] / 4 / int64(len(asks))
	}
	for i := range asks {
		model, err := asks[i].plan(free, share, max(m.Flight, 1))
		if err != nil {
			return nil, err
		}
		for d := range model.Takes {
			free[d] -= model.Takes[d].KV
		}
		p.Models = append(p.Models, *model)
		p.Slab = max(p.Slab, asks[i].slab())
	}
	return p, nil
}

// abreast is how many cards share a row's work, where most do.
func (a *Ask) abreast() (most int) {
	for d := range a.count() {
		most = max(most, a.traits(d).Abreast)
	}
	return max(most, 1)
}

// plan fixes the sizes of one model. Its cache gets at most share by default, and free if its size was asked for. A
// sequence has blocks granted for the rows of each step in flight and of the next one: hence cache.ahead.
func (a *Ask) plan(free, share room, flight int) (*Model, error) {
	if err := a.checkLayers(); err != nil {
		return nil, err
	}
	m := &Model{Sequences: or(a.Sequences, defaultSequences), Devices: a.deal(), Takes: make([]Takes, a.count())}
	for d := range m.Takes {
		m.sides = append(m.sides, side{a.traits(d).Memory == backend.OwnMemory, a.traits(d).Away})
	}
	layout := backend.Config{Limits: backend.Limits{KV: a.KV}}
	if layout.KV.Format == (backend.Format{}) {
		layout.KV = backend.KVF16
	}
	c := cache{program: a.Program.Program, kv: layout.KV, sequences: min(m.Sequences, spareContexts),
		devices: len(m.Takes)}
	c.layers, c.states = a.holders(m.Devices)
	if slices.Min(m.Devices) < a.count()-1 { // the last one computes what nothing is said of
		layout.Devices = m.Devices
	}
	rows := a.Rows
	if rows <= 0 {
		rows = c.ease(defaultRows*a.abreast(), flight, share)
	}
	if a.Program.Whole { // a step has room for the longest text, if that is not too long
		rows = max(rows, min(a.Program.Context, wholeRows))
	}
	m.Rows = max(rows, m.Sequences)
	m.Wanted = max(min(rows, maxLogits/4/a.Program.Vocab), m.Sequences)
	if a.Program.Whole {
		m.Wanted = m.Rows // their vectors are short
	}
	if m.Beside = max(rows/4, m.Sequences+leastBeside); m.Apart() {
		m.Beside = m.Rows // a card that has fewer is not busy: it reads four prompts of 128 rows as fast as two
	}
	layout.MaxRows, layout.MaxWanted, layout.MaxSpans = m.Rows, m.Wanted, m.Sequences
	if len(a.Adapters) > 1 {
		layout.Adapters = slices.Min(a.Adapters[1:])
	}
	c.ahead = (flight + 1) * m.Rows
	if err := c.plan(a, m, &layout, free, share); err != nil {
		return nil, err
	}
	m.Layout = layout
	return m, a.house(m)
}

// house gives every group its home.
func (a *Ask) house(m *Model) error {
	switch d := m.Devices[0]; {
	case m.Divided():
		return a.divide(m)
	case a.budget(d) == 0 || a.InPlace:
		a.resident(m)
		return nil
	case a.traits(d).Away: // nothing streams there
		if a.tight() > 0 {
			return a.tooMany(d)
		}
		a.resident(m)
		return nil
	default:
		return a.tiers(m, d)
	}
}

// resident gives every group a home of its own.
func (a *Ask) resident(m *Model) {
	for g, group := range a.Program.On(a.Program.All()) {
		home := Home{Group: group, Device: m.Devices[group.Segment], Tier: Device, Slot: g}
		if a.InPlace {
			home.Tier = Disk
		} else {
			m.Takes[home.Device].Weights += a.traits(home.Device).RoomFor(a.Program, &group, false)
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
