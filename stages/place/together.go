package place

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Together gives the weights of programs that are computed one after another, such as those of a transformer that makes
// pictures, their homes on the host within one budget. It has no caches, and nothing goes through slabs: what stays is
// uploaded by whoever loads the programs, and what streams is read into its slots. 0: all of it stays.
//
// Each program gets what it cannot do without, and a part of the rest by what it would have to stream. One of a few
// large groups stays whole, if there is room: it would read much to save little.
func Together(programs []*ir.Bound, budget int64) ([]Model, error) {
	shares, err := portions(programs, budget)
	if err != nil {
		return nil, err
	}
	models := make([]Model, len(programs))
	for i, p := range programs {
		a := Ask{Program: p, straight: true, Budgets: []int64{shares[i]}}
		models[i] = Model{Devices: make([]int, len(p.Segments)), Takes: make([]Takes, 1), sides: make([]side, 1)}
		if err := a.tiers(&models[i], 0); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// littleSaved is the share of what a program would read for each step that it saves in memory, below which it stays
// whole before others get more than they need.
const littleSaved = 0.4

// portions divides a budget among programs.
func portions(programs []*ir.Bound, budget int64) (shares []int64, err error) {
	needs, reads, total, must := make([]int64, len(programs)), make([]int64, len(programs)), int64(0), int64(0)
	for i, p := range programs {
		a := Ask{Program: p}
		whole := a.sort(0)
		t := a.cut(new(Model), whole)
		fewest := t.smallest()
		needs[i], reads[i] = whole.total, fewest.read
		shares = append(shares, min(whole.total, t.vectors+t.shelves()+fewest.bytes))
		total, must = total+needs[i], must+shares[i]
	}
	if budget == 0 || total <= budget {
		return needs, nil
	}
	if must > budget {
		return nil, refusal("", budget, must)
	}
	spare := budget - must
	for i := range shares {
		if saved := needs[i] - shares[i]; saved <= spare && float64(saved) < littleSaved*float64(reads[i]) {
			spare, must = spare-saved, must+saved
			shares[i] = needs[i]
		}
	}
	for i := range shares {
		if saved := needs[i] - shares[i]; saved > 0 {
			shares[i] += int64(float64(spare) * float64(saved) / float64(total-must))
		}
	}
	return shares, nil
}

// Resident says by Ref which weights stay where they are computed from: those of groups with slots of their own.
func (m *Model) Resident(weights int) []bool {
	stay := make([]bool, weights)
	for i := range m.Homes {
		for _, r := range m.Homes[i].Group.Weights {
			stay[r] = m.Homes[i].Slot >= 0
		}
	}
	return stay
}

// Seconds is how long a step of so many rows that see each other takes on the host; 0: not known.
func (m *Model) Seconds(p *ir.Bound, s *Speeds, rows int) float64 {
	return m.reading(p, s, m.cost(p, float64(rows)), float64(rows), 0)[0]
}

// Streamed is how many bytes a step reads of the file.
func (m *Model) Streamed() (bytes int64) {
	for _, g := range m.Ring.Groups {
		bytes += m.Homes[g].Group.Bytes
	}
	return bytes
}

// SlotBytes is how many bytes the slots of the ring take.
func (m *Model) SlotBytes(p *ir.Bound) (bytes int64) {
	for _, g := range m.Ring.Groups {
		bytes = max(bytes, backend.SlotBytes(p, &m.Homes[g].Group))
	}
	return bytes * int64(len(m.Ring.Slots))
}
