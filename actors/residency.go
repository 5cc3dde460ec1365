package actors

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/shelf"
)

// residency is where the groups of a model are that share slots: which slot is whose, what is on its way, and what a
// step holds. It belongs to the device's actor, which alone knows what is being read: so nothing is overwritten that
// a step reads, and nothing is read before all of it is there. What comes instead of what is decided here; when it
// travels, by the prefetcher.
//
// Dense groups go round a ring: a slot that was read is for the next group in the program's order that has none, and
// after the last group of a step comes the first one of the next. Experts stay in the slots of their layer until
// another one is needed more.
type residency struct {
	cargo   *cargo
	want    func(*want)
	back    func(*returned)
	groups  []holding
	slots   []slotState
	segment []shared // by segment
	ring    ring
	policy  *shelf.Policy // of experts
	among   []int32       // that may leave
	loans   []*loan       // that nobody has
}

// holding is a group of weights.
type holding struct {
	slot  int // -1: none
	there bool
	place int // in the ring's order; -1: it is no part of it
}

// slotState is where a group is, or will be.
type slotState struct {
	group  int // -1: none
	leases int
	number uint64 // of its items
	memory bool   // it has some that is read into
	asked  urgency
}

// shared is what a segment multiplies by.
type shared struct {
	groups  []int // dense ones, in order
	expert  []int // by expert: the group
	streams bool  // some of them share slots
	route   int   // the segment that chooses among experts
	shelf   []int // slots that they share
	layer   int   // the policy's
	chosen  []bool
	touched []int32
}

type ring struct {
	order []int // groups
	slots []int
	next  int // in order: from where on groups are looked for that have no slot
}

// newResidency returns one that says with want what is to be brought, and with back what the device returns late.
func newResidency(c *cargo, p *place.Part, bound *ir.Bound, want func(*want), back func(*returned)) *residency {
	r := &residency{cargo: c, want: want, back: back, groups: make([]holding, len(c.homes)),
		slots: make([]slotState, len(p.Layout.Slots)), segment: make([]shared, len(bound.Segments)),
		ring: ring{order: p.Ring.Groups, slots: p.Ring.Slots}}
	for i := range r.slots {
		r.slots[i].group = -1
	}
	for g := range c.homes {
		r.add(g, &c.homes[g])
	}
	for i, g := range p.Ring.Groups {
		r.groups[g].place = i
	}
	var experts []int // by layer
	for i := range p.Shelves {
		s := &r.segment[p.Shelves[i].Segment]
		layer := bound.Segments[p.Shelves[i].Segment].Layer
		s.shelf, s.layer, s.chosen = p.Shelves[i].Slots, i, make([]bool, len(s.expert))
		experts = append(experts, len(s.expert))
		s.route = slices.IndexFunc(bound.Segments, func(x ir.Segment) bool {
			return x.Kind == ir.SegRoute && x.Layer == layer
		})
	}
	r.policy = shelf.New(shelf.Ours, experts)
	for _, at := range slices.Concat(slices.Collect(shelves(p)), p.Ring.Slots) {
		r.slots[at].memory = c.model.Slot(at) != nil
	}
	return r
}

// shelves are the slots of all experts.
func shelves(p *place.Part) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range p.Shelves {
			for _, at := range p.Shelves[i].Slots {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// add notes a group of a segment. One with a slot of its own is always there.
func (r *residency) add(g int, home *place.Home) {
	r.groups[g] = holding{slot: home.Slot, there: home.Slot >= 0, place: -1}
	if home.Group.Use != ir.Matrix {
		return
	}
	if home.Slot >= 0 {
		r.slots[home.Slot].group = g
	}
	s := &r.segment[home.Group.Segment]
	s.streams = s.streams || home.Slot < 0
	if home.Group.Expert == ir.Dense {
		s.groups = append(s.groups, g)
	} else { // they come in order
		s.expert = append(s.expert, g)
	}
}

// streams says whether a segment reads groups that share slots.
func (r *residency) streams(segment int) bool { return r.segment[segment].streams }

// demand has those of groups that are not there brought, as far as slots are free of what the step still needs.
func (r *residency) demand(segment int, groups []int) {
	s := &r.segment[segment]
	for _, g := range groups {
		h := &r.groups[g]
		switch {
		case h.there:
		case h.slot >= 0:
			r.urge(h.slot)
		case h.place >= 0:
			if !slices.ContainsFunc(groups, r.inRing) { // else it comes after that one
				r.rewind(h.place)
			}
		default:
			if victim := s.victim(r, groups); victim >= 0 {
				r.bring(g, victim, demanded)
			}
		}
	}
}

// inRing says whether a group has one of the slots of the ring.
func (r *residency) inRing(g int) bool { return r.groups[g].place >= 0 && r.groups[g].slot >= 0 }

// victim is the slot of a layer that is to be overwritten; -1: all are needed.
func (s *shared) victim(r *residency, needed []int) int {
	r.among = r.among[:0]
	for _, i := range s.shelf {
		x := &r.slots[i]
		switch {
		case x.group < 0:
			return i
		case x.leases == 0 && r.groups[x.group].there && !slices.Contains(needed, x.group):
			r.among = append(r.among, int32(r.expert(x.group)))
		}
	}
	if len(r.among) == 0 {
		return -1
	}
	return r.groups[s.expert[r.policy.Victim(s.layer, r.among)]].slot
}

// expert is whose group it is.
func (r *residency) expert(g int) int { return r.cargo.homes[g].Group.Expert }

// bring makes a slot a group's, whose bytes are still to come.
func (r *residency) bring(g, at int, u urgency) {
	s := &r.slots[at]
	r.clear(at)
	s.group, s.number, s.asked = g, s.number+1, u
	r.groups[g].slot = at
	if e := r.expert(g); e != ir.Dense {
		r.policy.Arrive(r.segment[r.cargo.homes[g].Group.Segment].layer, e)
	}
	if !s.memory {
		r.place(g, at, nil)
	}
	r.want(&want{item{r.cargo, g, at, s.number}, u})
}

// urge says that a step waits for what is on its way to a slot.
func (r *residency) urge(at int) {
	s := &r.slots[at]
	if s.asked == demanded {
		return
	}
	s.asked = demanded
	r.want(&want{item{r.cargo, s.group, at, s.number}, demanded})
}

// clear takes the group from a slot, which is neither leased nor being written to.
func (r *residency) clear(at int) {
	if s := &r.slots[at]; s.group >= 0 {
		if e := r.expert(s.group); e != ir.Dense {
			r.policy.Leave(r.segment[r.cargo.homes[s.group].Group.Segment].layer, e)
		}
		r.groups[s.group].slot, r.groups[s.group].there = -1, false
		s.group = -1
	}
}

// place tells the device whose a slot is. That it refuses is a defect.
func (r *residency) place(g, at int, data [][]byte) {
	if err := r.cargo.model.Place(g, at, data); err != nil {
		panic(fmt.Sprintf("placing group %d in slot %d: %v", g, at, err))
	}
}

// landed hears of the end of an item's way.
func (r *residency) landed(m *landed) {
	s := &r.slots[m.slot]
	switch {
	case s.number != m.number || s.group != m.home || r.groups[m.home].there:
		return // heard before
	case m.err != nil:
		r.clear(m.slot)
		return
	case s.memory:
		r.place(m.home, m.slot, m.in(r.cargo.model.Slot(m.slot)))
	}
	r.groups[m.home].there = true
}

// loan is groups that the device reads for a part of a segment. Nothing comes to their slots until it is settled.
type loan struct {
	groups []int
	meet   atomic.Uint32 // where the device's actor and whoever calls done find out which of them comes second
	done   func()        // bound once
}

// lend leases those of groups that are there.
func (r *residency) lend(groups []int) *loan {
	l := r.loan()
	for _, g := range groups {
		if r.groups[g].there {
			l.groups = append(l.groups, g)
			r.slots[r.groups[g].slot].leases++
		}
	}
	return l
}

func (r *residency) loan() *loan {
	if n := len(r.loans); n > 0 {
		l := r.loans[n-1]
		r.loans = r.loans[:n-1]
		l.groups = l.groups[:0]
		return l
	}
	l := new(loan)
	l.done = func() {
		if l.meet.Swap(1) == 1 {
			r.back(&returned{r, l})
		}
	}
	return l
}

// part is the device's work on a loan.
func (l *loan) part(segment int, last bool) backend.Work {
	l.meet.Store(0)
	return backend.Work{Segment: segment, Groups: l.groups, Last: last, Done: l.done}
}

// returned says, once the device has its work, whether it is done with it.
func (l *loan) returned() bool { return l.meet.Swap(1) == 1 }

// settle ends a loan. Slots of dense groups are free then for what comes next.
func (r *residency) settle(l *loan) {
	for _, g := range l.groups {
		s := &r.slots[r.groups[g].slot]
		if s.leases--; s.leases == 0 && r.groups[g].place >= 0 {
			r.clear(r.groups[g].slot)
		}
	}
	r.loans = append(r.loans, l)
	r.fill()
}

// pass gives up dense groups that the step has no use for.
func (r *residency) pass(groups []int) {
	for _, g := range groups {
		if h := &r.groups[g]; h.there && r.slots[h.slot].leases == 0 {
			r.clear(h.slot)
		}
	}
	r.fill()
}

// fill asks for groups of the ring while it has free slots.
func (r *residency) fill() {
	n := len(r.ring.order)
	for _, at := range r.ring.slots {
		if r.slots[at].group >= 0 {
			continue
		}
		for range n {
			if r.groups[r.ring.order[r.ring.next]].slot < 0 {
				break
			}
			r.ring.next = (r.ring.next + 1) % n
		}
		g := r.ring.order[r.ring.next]
		if r.groups[g].slot >= 0 {
			return // all have slots
		}
		r.bring(g, at, ahead)
		r.ring.next = (r.ring.next + 1) % n
	}
}

// rewind turns the ring to a group that a step needs out of turn: one before it was given up, or could not be read.
// Those that are not among the next ones leave their slots.
func (r *residency) rewind(to int) {
	n, window := len(r.ring.order), len(r.ring.slots)
	for _, at := range r.ring.slots {
		s := &r.slots[at]
		if s.group >= 0 && s.leases == 0 && r.groups[s.group].there && (r.groups[s.group].place-to+n)%n >= window {
			r.clear(at)
		}
	}
	r.ring.next = to
	r.fill()
	if at := r.groups[r.ring.order[to]].slot; at >= 0 {
		r.urge(at)
	}
}

// choose sets need to the groups of the experts that rows chose, each once, ascending.
func (r *residency) choose(segment int, need []int, experts []int32) []int {
	s := &r.segment[segment]
	clear(s.chosen)
	for _, e := range experts {
		if e >= 0 {
			s.chosen[e] = true
		}
	}
	need, s.touched = need[:0], s.touched[:0]
	for e, g := range s.expert {
		if s.chosen[e] {
			need, s.touched = append(need, g), append(s.touched, int32(e))
		}
	}
	r.policy.Touch(s.layer, s.touched)
	return need
}
