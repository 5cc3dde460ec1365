package place

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Slabs between disk and device: some are filled while others are emptied.
const (
	Slabs     = 12
	fullSlab  = 1 << 20 // bytes, of most models; smaller where the slabs would be more than slabShare of all weights
	leastSlab = 64 << 10
	slabShare = 32
	slabRows  = 64 // a slab holds so many rows of any weight: a multiple of every device's row grain
)

// slabRoom is how many bytes larger a slab is than what travels in it: reads round outwards to sectors.
const slabRoom = 2 * backend.Sector

// slabs is the memory of all slabs that the model's weights need.
func (a *Ask) slabs() int64 { return Slabs * (int64(a.slab()) + slabRoom) }

// SlabBytes is the memory of all slabs.
func (p *Plan) SlabBytes() int64 {
	if p.Slab == 0 {
		return 0
	}
	return Slabs * (int64(p.Slab) + slabRoom)
}

// slab is the size in bytes of the slabs that the model's weights travel in.
func (a *Ask) slab() int {
	if a.InPlace {
		return 0
	}
	total := int64(0)
	for _, g := range a.Program.On(a.Program.All()) {
		total += g.Bytes
	}
	bytes := int(min(max(total/slabShare/Slabs, leastSlab), fullSlab))
	for ref, w := range a.Program.Weights {
		bytes = max(bytes, int(a.Program.Size(ir.Ref(ref)))/w.Rows*slabRows)
	}
	return bytes
}
