package tiers

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Source is a model's file, its program bound to the file's tensors, and the plan of where each group goes. Nobody
// changes it.
type Source struct {
	File  *gguf.File
	Bound *ir.Bound
	Plan  *place.Model
}

// Cargo is the weights of one model on their way to a device, with the model as it was compiled there. Nobody changes
// it, but for the account of what has come: progress, memory, ends and failed.
type Cargo struct {
	Source
	model    backend.Model
	progress *Progress
	memory   *tenure  // for how long reads may write to the model's memory
	slots    int      // of the device; berths beyond them are those of kept groups
	ends     []ending // by berth or slot: how the last item there ended; the uploader's incarnations share it
	failed   bool     // the prefetcher has told the device that some of it does not come
}

// NewCargo returns the cargo of a source for a compiled model. It resets progress.
func NewCargo(s Source, model backend.Model, progress *Progress) *Cargo {
	progress.begin()
	slots := len(s.Plan.Homes)
	if shared := s.Plan.Layout.Slots; shared != nil {
		slots = len(shared)
	}
	return &Cargo{Source: s, model: model, progress: progress, memory: new(tenure), slots: slots,
		ends: make([]ending, slots+len(s.Plan.Homes))}
}

// berth is the number of the place to which a group is brought once: its slot, or, for a group that is kept in the
// program's memory, a number beyond all slots.
func (c *Cargo) berth(group int) int {
	if c.home(group).Kept() {
		return c.slots + group
	}
	return c.home(group).Slot
}

// Close lets nothing more be read or uploaded for the model, and waits until what is under way has ended.
func (c *Cargo) Close() { c.memory.close() }

// home is where a group is to lie.
func (c *Cargo) home(group int) *place.Home { return &c.Plan.Homes[group] }

// ending says which item was the last that came to its end at a berth, and with which error; number 0: none did.
type ending struct {
	number uint64
	err    error
}

// recount sets the progress of loading to the bytes of the groups that are complete: pieces of the others travel
// again.
func (c *Cargo) recount() {
	bytes := int64(0)
	for i := range c.Plan.Homes {
		if h := c.home(i); h.Brought() && c.ends[c.berth(i)].number > 0 {
			bytes += h.Group.Bytes
		}
	}
	c.progress.bytes.Store(bytes)
}

// tensor is a weight in the file.
func (c *Cargo) tensor(ref ir.Ref) *gguf.Tensor { return &c.File.Tensors[c.Bound.Tensors[ref]] }

// failure says which tensor could not be brought.
func (c *Cargo) failure(ref ir.Ref, err error) error {
	return fmt.Errorf("%s: tensor %q: %w", c.File.Name, c.Bound.Weights[ref].Name, err)
}

// item is a group of weights on its way to a slot.
type item struct {
	of     *Cargo
	group  int
	slot   int
	number uint64 // of the slot's items, from 1; the next one follows only when this one has come to its end
}

// urgency says who waits for an item, the most urgent first.
type urgency uint8

const (
	demanded urgency = iota // a step
	ahead                   // a step that will come to it
	guessed                 // a step may need it: its expert is likely to be chosen
	filling                 // some step may need it: it fills a free slot
	urgencies
	forsaken = urgencies // nobody any more; it comes only if it is on its way already
)

// home is where the item's group is to lie.
func (x item) home() *place.Home { return x.of.home(x.group) }

// shared is the memory of the item's slot, if groups share that slot and the device lets reads write to it; else nil.
func (x item) shared() []byte {
	if x.home().Brought() {
		return nil
	}
	return x.of.model.Slot(x.slot)
}

// extent is the bytes of one weight that belong to a group: their offset in the file, their number, and their offset
// in the slot.
type extent struct{ from, bytes, at int64 }

// extents lists where a group's weights lie, one behind the other in the slot.
func (x item) extents() []extent {
	g := &x.home().Group
	all, at := make([]extent, len(g.Weights)), int64(0)
	for i, ref := range g.Weights {
		w, t := &x.of.Bound.Weights[ref], x.of.tensor(ref)
		from, to := g.Rows(w)
		row := t.Size / int64(w.Rows)
		e := extent{from: t.Offset + int64(from)*row, bytes: int64(to-from) * row}
		e.at = at + int64(uring.HeadOf(e.from))
		at += backend.ExtentBytes(e.bytes)
		all[i] = e
	}
	return all
}

// in returns the bytes of each of the group's weights, as they lie in its slot, whose memory is given.
func (x item) in(memory []byte) [][]byte {
	all := x.extents()
	data := make([][]byte, len(all))
	for i, e := range all {
		data[i] = memory[e.at : e.at+e.bytes : e.at+e.bytes]
	}
	return data
}
