// Package placetest makes plans that no machine would need: with hardly any slots, so that small models stream.
//
// Only tests import it.
package placetest

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

// Few is a plan in which most weights are streamed.
type Few struct {
	Ring  int   // slots of dense groups; 0: they stay
	Shelf int   // slots of each layer's experts; 0: they stay
	Piece int64 // bytes of a piece of the head; 0: as usual
}

// Plan changes a plan, which was made with all weights resident. Of a plan for two devices, what the host computes with
// is streamed.
func (f Few) Plan(p *ir.Bound, m *place.Model) {
	p.Piece, m.Piece = f.Piece, f.Piece
	part := &m.Parts[0]
	part.Layout.Slots = [][]int{}
	m.Homes = nil
	shelves := map[int]*place.Shelf{}
	for g, group := range p.On(p.All()) {
		home := place.Home{Group: group, Tier: place.Disk, Slot: -1}
		stays := part.Layout.OnHost != nil && !slices.Contains(part.Layout.OnHost, group.Segment)
		switch {
		case group.Use == ir.Table:
		case group.Use == ir.Matrix && group.Expert != ir.Dense && f.Shelf > 0 && !stays:
			if shelves[group.Segment] == nil {
				part.Shelves = append(part.Shelves, place.Shelf{Segment: group.Segment})
				shelves[group.Segment] = &part.Shelves[len(part.Shelves)-1]
			}
			s := &part.Shelves[len(part.Shelves)-1]
			s.Groups = append(s.Groups, g)
		case group.Use == ir.Matrix && group.Expert == ir.Dense && f.Ring > 0 && !stays:
			part.Ring.Groups = append(part.Ring.Groups, g)
		default:
			home.Tier, home.Slot = place.Device, len(part.Layout.Slots)
			part.Layout.Slots = append(part.Layout.Slots, []int{g})
		}
		m.Homes = append(m.Homes, home)
	}
	share := func(n int, groups []int) (slots []int) {
		for range n {
			slots = append(slots, len(part.Layout.Slots))
			part.Layout.Slots = append(part.Layout.Slots, groups)
		}
		return slots
	}
	if f.Ring > 0 {
		part.Ring.Slots = share(f.Ring, part.Ring.Groups)
	}
	for i := range part.Shelves {
		part.Shelves[i].Slots = share(f.Shelf, part.Shelves[i].Groups)
	}
}
