package tiers

import (
	"fmt"
	"slices"
	"time"
)

// Residency keeps track of the groups of a model that share slots: which group has which slot, what is on its way, and
// what a step has on loan. It belongs to the device's actor, which alone knows what is being read: so no slot is
// overwritten that a step reads, and none is read before all its bytes are there. Which group replaces which is
// decided here; when it travels, by the prefetcher.
//
// Dense groups go round a ring. Experts stay in the slots of their layer until another one is needed more.
type Residency struct {
	*occupancy
	back  func(*Returned)
	ring  ring
	loans []*Loan    // settled ones, to be used again
	ahead *foresight // of experts; nil: nothing is guessed
	stock stock
	late  bool // a step has given up waiting for what is on its way
}

// NewResidency returns a residency that asks for groups by want. The device's threads call back for a loan that is
// over only after its actor has asked (Loan.Returned).
func NewResidency(c *Cargo, want func(*Want), back func(*Returned)) *Residency {
	o := newOccupancy(c, want)
	return &Residency{occupancy: o, back: back, ring: newRing(o, &c.Plan.Ring), ahead: newForesight(o),
		stock: stock{o: o, shelves: c.Plan.Shelves}}
}

// CountTo sets the counters to which the residency adds.
func (r *Residency) CountTo(t *Traffic) { r.traffic = t }

// Dense are the groups of a segment that all rows need, in order.
func (r *Residency) Dense(segment int) []int { return r.segment[segment].groups }

// Chosen says whether a segment's groups are experts, which another one chooses among.
func (r *Residency) Chosen(segment int) bool { return len(r.segment[segment].expert) > 0 }

// Chooses says whether a segment chooses among experts that share slots.
func (r *Residency) Chooses(segment int) bool { return r.segment[segment].chooses }

// Streams says whether a segment reads groups that share slots.
func (r *Residency) Streams(segment int) bool { return r.segment[segment].streams }

// Begin says which tokens the rows of the next step are; one below 0 is not known.
func (r *Residency) Begin(tokens []int32) {
	if r.ahead != nil {
		r.ahead.Begin(tokens)
		r.ahead.guess()
	}
}

// Foresees says whether margins of a route, as Foreseen takes them, are of use.
func (r *Residency) Foresees(route int) bool { return r.ahead != nil && r.ahead.routes[route] >= 0 }

// Foreseen takes what the router of a route makes of the residual stream at the input of the layer before its own or,
// if late, at that layer's output: the margins of the rows, [rows][experts]. It guesses experts by them.
func (r *Residency) Foreseen(route int, late bool, margins []int8) {
	r.ahead.Scores(r.ahead.routes[route], late, margins)
	r.ahead.guess()
}

// Choose sets need to the groups of the experts that rows chose, each once, ascending.
func (r *Residency) Choose(segment int, need []int, experts []int32) []int {
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
			r.traffic.chose(r.groups[g].slot >= 0)
		}
	}
	if r.ahead != nil {
		r.ahead.chose(s, experts)
	}
	r.policy.Touch(s.layer, s.touched)
	return need
}

// Demand asks for those of groups that are not there, as far as there are slots which the step does not need
// otherwise.
func (r *Residency) Demand(segment int, groups []int) {
	s := &r.segment[segment]
	for _, g := range groups {
		h := &r.groups[g]
		switch {
		case h.there:
		case h.slot >= 0:
			r.urge(h.slot)
		case h.place >= 0:
			if !slices.ContainsFunc(groups, r.ring.holds) { // else it comes after that one
				r.ring.rewind(h.place)
			}
		default:
			if victim := r.victim(s, groups); victim >= 0 {
				r.bring(g, victim, demanded)
			}
		}
	}
}

// Landed takes in that an item has come to its end.
func (r *Residency) Landed(m *Landed) {
	r.late = r.late && m.Forsaken() // that says nothing about the drive
	s := &r.slots[m.slot]
	switch {
	case s.number != m.number || s.group != m.group || r.groups[m.group].there:
		return // heard before
	case m.Forsaken() && s.asked == demanded:
		return // it is wanted again, and comes
	}
	if m.Err == nil {
		r.traffic.landed(r.cargo.home(m.group).Group.Bytes, s.asked)
	}
	switch {
	case s.asked == guessed || s.asked == filling:
		r.count(s.asked, -1)
		s.asked = ahead
	case s.asked == forsaken && m.Err == nil:
		r.ahead.Wrong() // a guess that came although it was forsaken: it was being read
	}
	switch {
	case m.Err != nil:
		r.clear(m.slot)
		r.stock.end(m)
		return
	case s.memory:
		r.place(m.group, m.slot, m.in(r.cargo.model.Slot(m.slot)))
	}
	r.groups[m.group].there = true
	r.stock.fill()
}

// Late notes that a step has given up waiting for groups after so long, and returns the error that says so.
func (r *Residency) Late(groups []int, waited time.Duration) error {
	r.late = true
	ref := r.cargo.home(groups[0]).Group.Weights[0]
	return r.cargo.failure(ref, fmt.Errorf("the drive has given nothing of it for %v: check it", waited))
}

// Overdue says that a step has given up waiting for groups, and that nothing has come since.
func (r *Residency) Overdue() bool { return r.late }

// Returned, from the device's own threads to its actor, says that they no longer read the groups of a loan.
type Returned struct {
	Of   *Residency
	Loan *Loan
}

func (*Returned) Late() {}

// Lend leases those of groups that are there.
func (r *Residency) Lend(groups []int) *Loan {
	l := r.loan()
	for _, g := range groups {
		if r.groups[g].there {
			l.Groups = append(l.Groups, g)
			r.slots[r.groups[g].slot].leases++
		}
	}
	return l
}

func (r *Residency) loan() *Loan {
	if n := len(r.loans); n > 0 {
		l := r.loans[n-1]
		r.loans = r.loans[:n-1]
		l.Groups = l.Groups[:0]
		return l
	}
	return newLoan(func(l *Loan) { r.back(&Returned{r, l}) })
}

// Settle ends a loan. Slots of dense groups are free then for what comes next.
func (r *Residency) Settle(l *Loan) {
	for _, g := range l.Groups {
		s := &r.slots[r.groups[g].slot]
		if s.leases--; s.leases == 0 && r.groups[g].place >= 0 {
			r.clear(r.groups[g].slot)
		}
	}
	r.loans = append(r.loans, l)
	r.Fill()
}

// Pass gives up dense groups that the step has no use for.
func (r *Residency) Pass(groups []int) {
	for _, g := range groups {
		if h := &r.groups[g]; h.there && r.slots[h.slot].leases == 0 {
			r.clear(h.slot)
		}
	}
	r.Fill()
}

// Fill has the free slots of the ring filled, and, while the drive has nothing else to do, those of experts.
func (r *Residency) Fill() {
	r.ring.fill()
	r.stock.begun = true
	r.stock.fill()
}
