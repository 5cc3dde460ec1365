package backend

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Sector is the alignment of direct reads: for a drive to read straight into a slot, the offset in the file and the
// address in memory must be equal modulo Sector.
const Sector = 4096

// ExtentBytes is the room in a slot for n bytes of a file, wherever they begin there. A drive reads whole sectors, so
// the bytes lie as far behind the beginning of a sector in the slot as in the file.
func ExtentBytes(n int64) int64 { return (n + 2*Sector - 2) / Sector * Sector }

// SlotBytes is the memory of a slot for a group: the extents of its weights, one behind the other.
func SlotBytes(p *ir.Bound, g *ir.Group) (total int64) {
	for _, r := range g.Weights {
		w := &p.Weights[r]
		from, to := g.Rows(w)
		total += ExtentBytes(p.Size(r) / int64(w.Rows) * int64(to-from))
	}
	return total
}

// RoomFor is the memory that a group takes of a device: in a slot of its own, or in one that groups share.
func (t *Traits) RoomFor(p *ir.Bound, g *ir.Group, shares bool) int64 {
	switch {
	case t.Bytes != nil:
		return t.Bytes(p, g)
	case shares:
		return SlotBytes(p, g)
	}
	return g.Bytes
}

// Whole implements the methods of shared slots for the models of a device that has none.
type Whole struct{}

var errWhole = errors.New("on this device each group keeps its own slot, and segments are computed whole")

func (Whole) Slot(int) []byte                { return nil }
func (Whole) Place(int, int, [][]byte) error { return errWhole }

// Takes ends the leases of work, and is an error for a part of a segment and for work whose Chosen is set.
func (Whole) Takes(w *Work) error {
	w.Release()
	if !w.Whole || w.Chosen != nil {
		return errWhole
	}
	return nil
}

// Own says, by group, whether it has a slot of its own.
func (c *Layout) Own(groups int) []bool {
	own := make([]bool, groups)
	for g := range own {
		own[g] = c.Slots == nil
	}
	for _, fit := range c.Slots {
		if len(fit) == 1 {
			own[fit[0]] = true
		}
	}
	return own
}

func (c *Config) checkSlots(p *ir.Bound, t Traits) error {
	if len(c.Kept) > 0 && (c.Slots == nil || t.Memory != OwnMemory) {
		return errors.New("groups are kept in the program's memory: they share no slots, or the device computes there")
	}
	if c.Slots == nil {
		return nil
	}
	if c.InPlace() != nil {
		return errors.New("weights in place: they have no use for slots")
	}
	segments := c.Segments
	if segments == nil {
		segments = p.All()
	}
	groups := p.On(segments)
	slots, own := make([]int, len(groups)), make([]int, len(groups)) // of each group
	for s, fit := range c.Slots {
		if len(fit) > 1 && !t.Shares {
			return fmt.Errorf("slot %d is for %d groups: on this device each group keeps its own", s, len(fit))
		}
		for _, g := range fit {
			if g < 0 || g >= len(groups) {
				return fmt.Errorf("slot %d is for group %d of %d", s, g, len(groups))
			}
			slots[g]++
			if len(fit) == 1 {
				own[g]++
			}
		}
	}
	for g := range groups {
		switch {
		case own[g] > 1 || own[g] == 1 && slots[g] > 1:
			return fmt.Errorf("group %d has %d slots of its own among %d: want one, or none", g, own[g], slots[g])
		case groups[g].Use != ir.Matrix && slots[g] != own[g]:
			return fmt.Errorf("group %d shares slots: only matrices can", g)
		case slots[g] == 0 && (groups[g].Use != ir.Table || !t.Shares):
			return fmt.Errorf("no slot is for group %d", g)
		}
	}
	for i, g := range c.Kept {
		if g < 0 || g >= len(groups) || own[g] > 0 || slots[g] == 0 || i > 0 && g <= c.Kept[i-1] {
			return fmt.Errorf("groups %v are kept: want ascending ones that share slots, of %d", c.Kept, len(groups))
		}
	}
	return c.checkTables(p, segments, groups, own)
}

// checkTables checks that each table with rows in shared slots is given in Uploaded.Tables, whole.
func (c *Config) checkTables(p *ir.Bound, segments []int, groups []ir.Group, own []int) error {
	away, tables := make([]bool, len(p.Weights)), c.Uploaded().Tables
	for g := range groups {
		for _, r := range groups[g].Weights {
			away[r] = away[r] || own[g] == 0
		}
	}
	for _, s := range segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			if !n.Op.LooksUp() || !away[n.W] {
				continue
			}
			if int(n.W) >= len(tables) || int64(len(tables[n.W])) != p.Size(n.W) {
				return fmt.Errorf("%s is in no slot of its own: want its %d bytes in Tables", p.Weights[n.W].Name, p.Size(n.W))
			}
		}
	}
	return nil
}
