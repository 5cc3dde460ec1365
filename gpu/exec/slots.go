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

// group is matrices that move together, each laid as kernels read it, one behind the other. A group with a slot of its
// own is one only where others of its layer or matrix move: any other lies where the model's weights do.
type group struct {
	moves    bool
	matrices []laid
	bytes    uint64
	home     *driver.Buffer // of one that does not move
	kept     *driver.Buffer // in the host's memory, what is copied to a slot, from an offset on; nil: it is uploaded there
	from     uint64
	slot     int    // absent: none
	copied   uint64 // it is there when copies have come to this value

	landed atomic.Int64 // when its copy was seen to have ended, in nanoseconds since 1970

	rows    int           // tiles of rows, of all matrices
	filled  []atomic.Bool // by tile of rows: it was uploaded
	missing atomic.Int64  // tiles that were not
	written atomic.Uint64 // value of the queue's timeline at the last of them
}

// laid is a matrix and where it begins in its group's memory.
type laid struct {
	w  *kernel.Matrix
	at uint64
}

// slot is a place that groups share.
type slot struct {
	memory *driver.Buffer // nil: the slot is one group's own
	group  int            // absent: none
	used   uint64         // value of the queue's timeline when nothing reads it any more
	copied uint64         // value of the copies' when nothing is copied to it any more
}

// absent stands for no group, and for no slot.
const absent = plan.Absent

// nameOf is a group's, by its first weight.
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

// address is where a group's memory begins to which it is uploaded; 0: it has none now.
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

// there is an error if kernels cannot read a group.
func (m *weights) there(g int) error {
	x := &m.groups[g]
	switch {
	case len(x.matrices) == 0:
		return nil // where it always is
	case x.moves && x.slot == absent:
		return fmt.Errorf("group %d (%s) is in no slot", g, m.nameOf(g))
	case x.missing.Load() > 0:
		return fmt.Errorf("group %d (%s) was not uploaded whole", g, m.nameOf(g))
	}
	return nil
}

// base is where kernels read a group that is there.
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

// present lists the groups of a segment that are there.
func (m *weights) present(segment int) (all []int) {
	for _, g := range m.parts.Matrices[segment] {
		if m.there(g) == nil {
			all = append(all, g)
		}
	}
	return all
}

// place makes a slot a group's. A copy of one that is kept begins when nothing reads the slot any more.
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
	x.copied = r.copied // what was on its way there comes first
	for i := range x.filled {
		x.filled[i].Store(false)
	}
	x.missing.Store(int64(x.rows))
	return nil
}

// behind is the value of copies that the group's place is free at, to be uploaded to. Of no group it is at once.
func (x *group) behind() uint64 {
	if x == nil || x.kept != nil {
		return 0
	}
	return x.copied
}

// wrote notes the value of the queue's timeline at which some of the group had been uploaded. The upload has waited for
// it, but a copy sees what another queue wrote only if it waits for that queue's timeline, too.
func (x *group) wrote(value uint64) {
	if x == nil {
		return
	}
	for before := x.written.Load(); before < value && !x.written.CompareAndSwap(before, value); {
		before = x.written.Load()
	}
}

// note keeps account of rows that were uploaded.
func (x *group) note(w *weight, row, rows int) {
	tile := w.tile + row%w.span/kernel.TileRows
	for i := range (rows + kernel.TileRows - 1) / kernel.TileRows {
		if x.filled[tile+i].CompareAndSwap(false, true) {
			x.missing.Add(-1)
		}
	}
}
