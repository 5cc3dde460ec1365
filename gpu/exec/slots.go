package exec

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/ir"
)

// group is matrices that move together. Each lies in tiles, one behind the other. Groups that stay have a place of
// their own only if others of their layer or matrix move; else their weights lie by themselves.
type group struct {
	moves    bool
	matrices []laid
	bytes    uint64
	home     *driver.Buffer // memory of a group that does not move
	kept     *driver.Buffer // host's memory: the group is copied from there, at from, to slots; nil: it is uploaded
	from     uint64
	slot     int    // absent: none
	copied   uint64 // value of the timeline of copies at which the group is in its slot

	landed atomic.Int64 // when its copy ended, as the host saw it, in nanoseconds since 1970

	rows    int           // tiles of rows, of all matrices
	filled  []atomic.Bool // by tile of rows: whether it was uploaded
	missing atomic.Int64  // tiles that were not uploaded yet
	written atomic.Uint64 // value of the queue's timeline at the end of its last upload
}

// laid is a matrix and where it begins in its group's memory.
type laid struct {
	w  *kernel.Matrix
	at uint64
}

// slot is memory that several groups use by turns.
type slot struct {
	memory *driver.Buffer // nil: the slot belongs to one group alone, which has its own memory
	group  int            // absent: none
	used   uint64         // value of the queue's timeline when nothing reads it any more
	copied uint64         // value of the timeline of copies when nothing is copied to it any more
}

// absent stands for no group, and for no slot.
const absent = plan.Absent

// nameOf is the name of a group, by its first weight.
func (m *weights) nameOf(g int) string {
	of := &m.parts.Groups[g]
	name := m.all[of.Weights[0]].name
	switch {
	case of.Expert != ir.Dense:
		return fmt.Sprintf("expert %d of %s", of.Expert, name)
	case of.Each > 0:
		return fmt.Sprintf("piece %d of %s", of.Piece, name)
	}
	return name
}

// address is where a group's rows are uploaded to; 0: it is in no slot now.
func (m *weights) address(x *group) uint64 {
	switch {
	case x.home != nil:
		return x.home.Address
	case x.kept != nil:
		return x.kept.Address + x.from
	case x.slot != absent:
		return m.slots[x.slot].memory.Address
	}
	return 0
}

// there returns an error if kernels cannot read a group now.
func (m *weights) there(g int) error {
	x := &m.groups[g]
	switch {
	case len(x.matrices) == 0:
		return nil // its weights never move
	case x.moves && x.slot == absent:
		return fmt.Errorf("group %d (%s) is in no slot", g, m.nameOf(g))
	case x.missing.Load() > 0:
		return fmt.Errorf("group %d (%s) was not uploaded whole", g, m.nameOf(g))
	}
	return nil
}

// base is the address at which kernels read a group.
func (m *weights) base(x *group) uint64 {
	if x.moves {
		return m.slots[x.slot].memory.Address
	}
	return x.home.Address
}

// streams says whether a segment reads groups that move.
func (m *weights) streams(segment int) bool {
	return slices.ContainsFunc(m.parts.Matrices[segment], func(g int) bool { return m.groups[g].moves })
}

// present lists the groups of a segment that kernels can read now.
func (m *weights) present(segment int) (all []int) {
	for _, g := range m.parts.Matrices[segment] {
		if m.there(g) == nil {
			all = append(all, g)
		}
	}
	return all
}

// place gives a slot to a group. The copy of a group that is kept in the host's memory begins when no step under way
// reads the slot any more.
func (m *weights) place(g, slot int, data [][]byte) error {
	if slot < 0 || slot >= len(m.slots) || m.slots[slot].memory == nil {
		return fmt.Errorf("group %d: slot %d of %d is none that groups share", g, slot, len(m.slots))
	}
	if !slices.Contains(m.config.Slots[slot], g) {
		return fmt.Errorf("group %d: slot %d is for groups %v", g, slot, m.config.Slots[slot])
	}
	if data != nil {
		return fmt.Errorf("group %d: slots of this device have no memory to place it from", g)
	}
	x, r := &m.groups[g], &m.slots[slot]
	if x.kept != nil && x.missing.Load() > 0 {
		return fmt.Errorf("group %d (%s) was not uploaded whole", g, m.nameOf(g))
	}
	if r.group != absent {
		m.groups[r.group].slot = absent
	}
	if x.slot != absent {
		m.slots[x.slot].group = absent
	}
	r.group, x.slot = g, slot
	if x.kept != nil {
		return m.fetch(g, slot)
	}
	x.copied = r.copied // uploads wait for copies to the slot that are under way
	for i := range x.filled {
		x.filled[i].Store(false)
	}
	x.missing.Store(int64(x.rows))
	return nil
}

// behind is the value of the timeline of copies at which rows may be uploaded to the group's place; 0: at once, as for
// rows of no group.
func (x *group) behind() uint64 {
	if x == nil || x.kept != nil {
		return 0
	}
	return x.copied
}

// wrote notes the value of the queue's timeline at which some rows of the group were uploaded. The upload has ended by
// then, but a copy on the other queue sees what it wrote only if it waits for this timeline.
func (x *group) wrote(value uint64) {
	if x == nil {
		return
	}
	for before := x.written.Load(); before < value && !x.written.CompareAndSwap(before, value); {
		before = x.written.Load()
	}
}

// note notes which tiles of rows were uploaded.
func (x *group) note(w *weight, row, rows int) {
	tile := w.tile + row%w.span/kernel.TileRows
	for i := range (rows + kernel.TileRows - 1) / kernel.TileRows {
		if x.filled[tile+i].CompareAndSwap(false, true) {
			x.missing.Add(-1)
		}
	}
}
