package tiers

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Source is a model's file and what of it goes where. Nobody changes it.
type Source struct {
	File  *gguf.File
	Bound *ir.Bound
	Plan  *place.Model
}

// Cargo is what can be brought to a device for one model, as it was compiled there. Nobody changes it, but for what the
// uploader keeps here.
type Cargo struct {
	Source
	model    backend.Model
	progress *Progress
	memory   *tenure // of the model's
	slots    int
	ends     []ending // by berth: of the last item that came to its end; the uploader's incarnations share it
	failed   bool     // the device was told that some of it does not come; the prefetcher's
}

// NewCargo is what goes from a model's file to the device. Its progress begins anew.
func NewCargo(s Source, model backend.Model, progress *Progress) *Cargo {
	progress.begin()
	slots := len(s.Plan.Homes)
	if shared := s.Plan.Layout.Slots; shared != nil {
		slots = len(shared)
	}
	return &Cargo{Source: s, model: model, progress: progress, memory: new(tenure), slots: slots,
		ends: make([]ending, slots+len(s.Plan.Homes))}
}

// berth is where a group is brought once: its slot, or, beyond all slots, the place where the device keeps it.
func (c *Cargo) berth(group int) int {
	if c.home(group).Kept() {
		return c.slots + group
	}
	return c.home(group).Slot
}

// Close returns when nothing is read or uploaded for the model any more, and nothing will be.
func (c *Cargo) Close() { c.memory.close() }

// home is where a group is to lie.
func (c *Cargo) home(group int) *place.Home { return &c.Plan.Homes[group] }

// ending is how an item's way ended.
type ending struct {
	number uint64
	err    error
}

// recount corrects the progress of loading: pieces of incomplete groups travel again.
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

// urgency is who waits for an item.
type urgency uint8

const (
	demanded urgency = iota // a step
	ahead                   // a step that will get there
	guessed                 // a step may
	filling                 // some step may: the slot is free
	urgencies
	forsaken = urgencies // nobody any more, unless it is on its way
)

// home is where the item's group is to lie.
func (x item) home() *place.Home { return x.of.home(x.group) }

// shared is the memory of the item's slot, if it is one that groups share and has any.
func (x item) shared() []byte {
	if x.home().Brought() {
		return nil
	}
	return x.of.model.Slot(x.slot)
}

// extent is the part of a weight that a group holds: in the file, and in a slot.
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

// in are a group's weights where they lie in its slot.
func (x item) in(memory []byte) [][]byte {
	all := x.extents()
	data := make([][]byte, len(all))
	for i, e := range all {
		data[i] = memory[e.at : e.at+e.bytes : e.at+e.bytes]
	}
	return data
}
