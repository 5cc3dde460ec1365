// Package placetest makes plans for tests: with hardly any slots, so that even small models stream.
//
// Only tests import it.
package placetest

import (
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

// Few is a plan in which most weights are streamed.
type Few struct {
	Ring  int   // slots of dense groups; 0: they stay
	Shelf int   // slots of each layer's experts; 0: they stay
	Piece int64 // bytes of a piece of the head; 0: as usual
}

// Plan changes a plan that was made with all weights resident. In a plan for two devices, only what the host
// computes with is streamed.
func (f Few) Plan(p *ir.Bound, m *place.Model) {
	p.Piece, m.Piece = f.Piece, f.Piece
	m.Layout.Slots = [][]int{}
	m.Homes = nil
	shelves := map[int]*place.Shelf{}
	for g, group := range p.On(p.All()) {
		home := place.Home{Group: group, Device: m.Devices[group.Segment], Tier: place.Disk, Slot: -1}
		stays := m.Divided() && home.Device > 0
		switch {
		case group.Use == ir.Table:
		case group.Use == ir.Matrix && group.Expert != ir.Dense && f.Shelf > 0 && !stays:
			if shelves[group.Segment] == nil {
				m.Shelves = append(m.Shelves, place.Shelf{Segment: group.Segment})
				shelves[group.Segment] = &m.Shelves[len(m.Shelves)-1]
			}
			s := &m.Shelves[len(m.Shelves)-1]
			s.Groups = append(s.Groups, g)
		case group.Use == ir.Matrix && group.Expert == ir.Dense && f.Ring > 0 && !stays:
			m.Ring.Groups = append(m.Ring.Groups, g)
		default:
			home.Tier, home.Slot = place.Device, len(m.Layout.Slots)
			m.Layout.Slots = append(m.Layout.Slots, []int{g})
		}
		m.Homes = append(m.Homes, home)
	}
	share := func(n int, groups []int) (slots []int) {
		for range n {
			slots = append(slots, len(m.Layout.Slots))
			m.Layout.Slots = append(m.Layout.Slots, groups)
		}
		return slots
	}
	if f.Ring > 0 {
		m.Ring.Slots = share(f.Ring, m.Ring.Groups)
	}
	for i := range m.Shelves {
		m.Shelves[i].Slots = share(f.Shelf, m.Shelves[i].Groups)
	}
}
