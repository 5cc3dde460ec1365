package tiers

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/expertcache"
)

// occupancy holds which group has which slot, and what is on its way: the state by which Residency, ring, stock and
// foresight decide, with the few operations that change it.
type occupancy struct {
	cargo   *Cargo
	want    func(*Want) // sends a request to the prefetcher
	groups  []holding
	slots   []slotState
	segment []shared            // by segment
	policy  *expertcache.Policy // of experts
	among   []int32             // scratch: experts that may leave their slots
	guesses int                 // guesses that have not landed
	fills   int                 // likewise, of groups that fill free slots
	traffic *Traffic
}

// holding is the state of a group of weights.
type holding struct {
	slot    int  // -1: none
	there   bool // all its bytes are in the slot
	place   int  // index in the ring's order; -1: not in the ring
	guessed bool // it was brought on a guess, and no step has used it
}

// slotState is the state of a slot: which group it holds, or waits for.
type slotState struct {
	group  int     // -1: none
	leases int     // loans that have it
	number uint64  // of the last item that was asked for
	memory bool    // it has memory that reads write to
	asked  urgency // of that item
}

// shared is the groups of a segment's weights, and what they share if they have no slots of their own.
type shared struct {
	groups  []int   // those of dense weights, in order
	expert  []int   // by expert: the group
	streams bool    // some of them share slots
	route   int     // the segment that chooses among experts
	chooses bool    // this segment chooses, among experts of another
	used    int     // most experts that a row chooses
	shelf   []int   // slots that the experts share
	layer   int     // its index in the policy
	chosen  []bool  // by expert: the step has chosen it
	touched []int32 // the experts that the step has chosen
}

// newOccupancy returns the state before anything travels: groups have slots of their own where the plan gives them
// one.
func newOccupancy(c *Cargo, want func(*Want)) *occupancy {
	p, bound := c.Plan, c.Bound
	o := &occupancy{cargo: c, want: want, traffic: new(Traffic), groups: make([]holding, len(c.Plan.Homes)),
		slots: make([]slotState, len(p.Layout.Slots)), segment: make([]shared, len(bound.Segments))}
	for i := range o.slots {
		o.slots[i].group = -1
	}
	for g := range c.Plan.Homes {
		o.add(g, c.home(g))
	}
	var experts []int // by layer
	for i := range p.Shelves {
		s := &o.segment[p.Shelves[i].Segment]
		layer := bound.Segments[p.Shelves[i].Segment].Layer
		s.shelf, s.layer, s.chosen = p.Shelves[i].Slots, i, make([]bool, len(s.expert))
		experts = append(experts, len(s.expert))
		s.route = slices.IndexFunc(bound.Segments, func(x ir.Segment) bool {
			return x.Kind == ir.SegRoute && x.Layer == layer
		})
		o.segment[s.route].chooses = true
		o.remember(s.shelf)
	}
	o.policy = expertcache.New(expertcache.Ours, experts)
	o.price(p.Shelves)
	o.remember(p.Ring.Slots)
	return o
}

// price tells the policy what it costs to bring the experts of a layer, if not all cost the same.
func (o *occupancy) price(shelves []place.Shelf) {
	for i := range shelves {
		prices, kept := []float64(nil), 0
		for _, g := range shelves[i].Groups {
			waits := o.cargo.home(g).Kept()
			if prices = append(prices, place.Price(waits)); waits {
				kept++
			}
		}
		if kept > 0 && kept < len(prices) {
			o.policy.Price(i, prices)
		}
	}
}

// add notes a group of a segment. One with a slot of its own is always there.
func (o *occupancy) add(g int, home *place.Home) {
	o.groups[g] = holding{slot: home.Slot, there: home.Slot >= 0, place: -1}
	if home.Group.Use != ir.Matrix {
		return
	}
	if home.Slot >= 0 {
		o.slots[home.Slot].group = g
	}
	s := &o.segment[home.Group.Segment]
	s.streams = s.streams || home.Slot < 0
	if home.Group.Expert == ir.Dense {
		s.groups = append(s.groups, g)
	} else { // they come in order
		s.expert = append(s.expert, g)
	}
}

// remember asks the device which slots have memory that is read into.
func (o *occupancy) remember(slots []int) {
	for _, at := range slots {
		o.slots[at].memory = o.cargo.model.Slot(at) != nil
	}
}

// expert is the expert whose weights a group is; ir.Dense: none.
func (o *occupancy) expert(g int) int { return o.cargo.home(g).Group.Expert }

// bring gives a slot to a group, and asks for its bytes.
func (o *occupancy) bring(g, at int, u urgency) {
	s := &o.slots[at]
	o.clear(at)
	s.group, s.number, s.asked = g, s.number+1, u
	o.groups[g].slot = at
	if e := o.expert(g); e != ir.Dense {
		o.policy.Arrive(o.segment[o.cargo.home(g).Group.Segment].layer, e)
	}
	if !s.memory {
		o.place(g, at, nil)
	}
	if o.cargo.home(g).Kept() { // the device copies it, and itself waits for the copy where it reads it
		o.groups[g].there = true
		return
	}
	o.count(u, 1)
	o.want(&Want{item{o.cargo, g, at, s.number}, u})
}

// count adds n to the number of guesses, or of fills, that are on their way.
func (o *occupancy) count(u urgency, n int) {
	switch u {
	case guessed:
		o.guesses += n
	case filling:
		o.fills += n
	}
}

// urge tells the prefetcher that a step waits for what is on its way to a slot, unless it was told.
func (o *occupancy) urge(at int) {
	if o.slots[at].asked != demanded {
		o.say(at, demanded)
	}
}

// say tells the prefetcher the new urgency of what is on its way to a slot.
func (o *occupancy) say(at int, u urgency) {
	s := &o.slots[at]
	o.count(s.asked, -1)
	o.count(u, 1)
	s.asked = u
	o.want(&Want{item{o.cargo, s.group, at, s.number}, u})
}

// clear takes the group from a slot, which is neither leased nor being written to.
func (o *occupancy) clear(at int) {
	if s := &o.slots[at]; s.group >= 0 {
		if e := o.expert(s.group); e != ir.Dense {
			o.policy.Leave(o.segment[o.cargo.home(s.group).Group.Segment].layer, e)
		}
		h := &o.groups[s.group]
		h.slot, h.there, h.guessed = -1, false, false
		s.group = -1
	}
}

// place tells the device which group a slot holds from now on. An error is a defect of the program.
func (o *occupancy) place(g, at int, data [][]byte) {
	if err := o.cargo.model.Place(g, at, data); err != nil {
		panic(fmt.Sprintf("placing group %d in slot %d: %v", g, at, err))
	}
}

// victim returns a slot of a layer to overwrite with one of the groups that a step needs: an empty one, or that of an
// expert which the policy can spare; -1: all are needed, leased or on their way.
func (o *occupancy) victim(s *shared, needed []int) int {
	o.among = o.among[:0]
	for _, i := range s.shelf {
		x := &o.slots[i]
		switch {
		case x.group < 0:
			return i
		case x.leases == 0 && o.groups[x.group].there && !slices.Contains(needed, x.group):
			o.among = append(o.among, int32(o.expert(x.group)))
		}
	}
	return o.leaves(s)
}

// leaves returns the slot of that expert of o.among which the policy can spare; -1: o.among is empty.
func (o *occupancy) leaves(s *shared) int {
	if len(o.among) == 0 {
		return -1
	}
	return o.groups[s.expert[o.policy.Victim(s.layer, o.among)]].slot
}
