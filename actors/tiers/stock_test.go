package tiers

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/place"
)

// shop is a model whose layers have five slots for six experts, of which a row uses two and the first ones wait in
// memory.
func shop(t *testing.T, kept int) (r *Residency, shelves []place.Shelf, wants *[]*Want) {
	s := plans(t)[3]
	plan := *s.Plan
	plan.Homes = slices.Clone(plan.Homes)
	plan.Shelves = slices.Clone(plan.Shelves)
	for i := range plan.Shelves {
		plan.Shelves[i].Used = 2
		require.Len(t, plan.Shelves[i].Groups, 6)
		for _, g := range plan.Shelves[i].Groups[:kept] {
			plan.Homes[g].Tier = place.Host
		}
	}
	s.Plan = &plan
	wants = new([]*Want)
	c := NewCargo(s, &slotted{place: func(int, int) error { return nil }, none: true}, new(Progress))
	r = NewResidency(c, func(m *Want) { *wants = append(*wants, m) }, nil)
	r.CountTo(new(Traffic))
	return r, plan.Shelves, wants
}

// filled has all come that is wanted, and returns the groups in the order in which they were.
func filled(r *Residency, wants *[]*Want) (groups []int) {
	for i := 0; i < len(*wants); i++ {
		groups = append(groups, (*wants)[i].group)
		r.Landed(&Landed{item: (*wants)[i].item})
	}
	return groups
}

// TestStock: once what is brought once is there, free slots are filled with experts from the file, in its order and a
// few at a time, but for as many as a row uses. What waits in memory is not brought.
func TestStock(t *testing.T) {
	r, shelves, wants := shop(t, 2)
	require.Empty(t, *wants)
	r.Fill()
	require.Len(t, *wants, mostFills)
	require.True(t, r.traffic.Load().Filling)
	for _, w := range *wants {
		require.Equal(t, filling, w.urgency)
	}
	var order []int
	for i := range shelves {
		order = append(order, shelves[i].Groups[2:5]...)
	}
	require.Equal(t, order, filled(r, wants))
	require.Zero(t, r.fills)
	moved := r.traffic.Load()
	require.False(t, moved.Filling)
	require.Positive(t, moved.AheadBytes)
	require.Zero(t, moved.StepBytes+moved.Guessed)
	r.Fill()
	require.Len(t, *wants, len(order), "once")
}

// TestStockReplaces: experts that wait in memory give up slots that they took before those on disk were there, but for
// what the last step chose.
func TestStockReplaces(t *testing.T) {
	r, shelves, wants := shop(t, 4)
	for i := range shelves {
		for _, chosen := range [][]int32{{2, 3}, {0, 1}} {
			need := r.Choose(shelves[i].Segment, nil, chosen)
			r.Demand(shelves[i].Segment, need)
		}
		need := r.Choose(shelves[i].Segment, nil, []int32{4})
		r.Demand(shelves[i].Segment, need)
		r.Choose(shelves[i].Segment, nil, []int32{0, 1})
	}
	for _, w := range slices.Clone(*wants) {
		r.Landed(&Landed{item: w.item})
	}
	r.Fill()
	filled(r, wants)
	require.False(t, r.traffic.Load().Filling)
	for i := range shelves {
		for e, g := range shelves[i].Groups {
			if e != 2 && e != 3 {
				require.True(t, r.groups[g].there, "expert %d of shelf %d", e, i)
			}
		}
	}
}

// TestStockIsUrged: a step that needs an expert which comes to a free slot has it hurry, and what fills goes on behind.
func TestStockIsUrged(t *testing.T) {
	r, shelves, wants := shop(t, 0)
	r.Fill()
	segment := shelves[0].Segment
	need := r.Choose(segment, nil, []int32{1, 5})
	r.Demand(segment, need)
	require.Equal(t, []urgency{demanded, demanded}, []urgency{(*wants)[4].urgency, (*wants)[5].urgency})
	require.Equal(t, []int{shelves[0].Groups[1], shelves[0].Groups[5]}, []int{(*wants)[4].group, (*wants)[5].group})
	require.Equal(t, (*wants)[1].item, (*wants)[4].item)
	require.Equal(t, mostFills-1, r.fills)
	r.Demand(segment, need)
	require.Len(t, *wants, 6, "once")
	r.Landed(&Landed{item: (*wants)[4].item})
	require.Equal(t, mostFills, r.fills)
	require.True(t, r.groups[need[0]].there)
}

// TestStockGivesUp: where something cannot be read, nothing more is that nobody asked for.
func TestStockGivesUp(t *testing.T) {
	r, shelves, wants := shop(t, 0)
	r.Fill()
	r.Landed(&Landed{item: (*wants)[0].item, Err: errors.New("input/output error")})
	r.Fill()
	require.Len(t, *wants, mostFills)
	require.True(t, r.traffic.Load().Filling)
	for _, w := range (*wants)[1:] {
		r.Landed(&Landed{item: w.item})
	}
	require.False(t, r.traffic.Load().Filling)
	require.Negative(t, r.groups[shelves[0].Groups[0]].slot)
}

// TestPrices: experts leave that wait in memory, though they are used seven times as often as those on disk.
func TestPrices(t *testing.T) {
	r, shelves, wants := shop(t, 3)
	segment := shelves[0].Segment
	r.Fill()
	filled(r, wants)
	read := 0
	for i := range 400 {
		chosen := []int32{int32(i % 3), int32((i + 1) % 3)}
		if i%5 == 4 {
			chosen[1] = int32(3 + i/5%3)
		}
		need := r.Choose(segment, nil, chosen)
		before := len(*wants)
		r.Demand(segment, need)
		read += len(*wants) - before
		for _, w := range (*wants)[before:] {
			require.Equal(t, demanded, w.urgency)
			r.Landed(&Landed{item: w.item})
		}
		for _, g := range need {
			require.True(t, r.groups[g].there)
		}
	}
	require.Zero(t, read, "three experts are on disk, and five slots there")
}

// TestFillsWait: what fills slots goes when nothing else is on its way, a few at a time.
func TestFillsWait(t *testing.T) {
	shared := of(place.Home{Slot: -1}, place.Home{Slot: -1}, place.Home{Slot: -1}, place.Home{Slot: -1})
	p := &prefetcher{pending: map[item]urgency{}}
	at := func(slot int) item { return item{shared, slot, slot, 1} }
	next := func() (item, bool) {
		x, u, ok := p.choose()
		if ok {
			p.take(x, u)
			p.pending[x] = u
		}
		return x, ok
	}
	for slot := range 3 {
		p.want(&Want{at(slot), filling})
	}
	p.want(&Want{at(3), demanded})
	x, _ := next()
	require.Equal(t, at(3), x)
	_, ok := next()
	require.False(t, ok, "a step's is on its way")
	delete(p.pending, at(3))
	for slot := range fetchAhead {
		x, _ = next()
		require.Equal(t, at(slot), x)
	}
	_, ok = next()
	require.False(t, ok, "enough are")
	p.want(&Want{at(2), demanded})
	x, _ = next()
	require.Equal(t, at(2), x, "it was chosen")
}
