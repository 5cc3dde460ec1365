package place

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Sizes is what of a program decides how its weights share a budget: enough to plan without the program.
type Sizes struct {
	Vectors int64   // bytes of vectors, which always stay
	Dense   []int64 // of each dense group of matrices, in program order
	Layers  []Experts
}

// Experts is the experts of one layer: how many, how many a row uses, and their size.
type Experts struct {
	Experts, Used int
	Bytes         int64 // of an expert
}

// SizesOf measures a program.
func SizesOf(p *ir.Bound) (s Sizes) {
	t := (&Ask{Program: p}).sort(p.Piece)
	s.Vectors = t.vectors
	for _, g := range t.dense {
		s.Dense = append(s.Dense, t.groups[g].Bytes)
	}
	for _, l := range t.layers {
		s.Layers = append(s.Layers, Experts{Experts: len(l.groups), Used: l.used, Bytes: t.groups[l.groups[0]].Bytes})
	}
	return s
}

// Share is how weights share a budget.
type Share struct {
	Read  int64 // bytes of dense groups that are streamed for each step
	Slots []int // for experts, by layer
}

// Share divides a budget for weights as a plan does; 0: all are resident.
func (s *Sizes) Share(weights int64) (*Share, error) {
	t := &sorted{vectors: s.Vectors, ahead: aheadBytes}
	group := func(bytes int64) int {
		t.groups = append(t.groups, ir.Group{Use: ir.Matrix, Bytes: bytes})
		t.slots, t.homes = append(t.slots, backend.ExtentBytes(bytes)), append(t.homes, bytes)
		return len(t.groups) - 1
	}
	for _, bytes := range s.Dense {
		t.dense = append(t.dense, group(bytes))
	}
	for _, l := range s.Layers {
		t.layers = append(t.layers, layer{used: l.Used, groups: make([]int, l.Experts), slot: backend.ExtentBytes(l.Bytes)})
	}
	share := &Share{}
	if weights > 0 {
		pinned := t.pin(weights - s.Vectors - t.shelves())
		if pinned == nil {
			return nil, refusal("", weights, s.Vectors+t.shelves()+t.least())
		}
		share.Read = pinned.read
		t.shelve(weights - s.Vectors - pinned.bytes)
	}
	for _, l := range t.layers {
		if weights == 0 {
			l.slots = len(l.groups)
		}
		share.Slots = append(share.Slots, l.slots)
	}
	return share, nil
}
