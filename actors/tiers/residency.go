package tiers

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/foresee"
	"github.com/sluice-ai/sluice/stages/place/shelf"
)

// Residency is where the groups of a model are that share slots: which slot is whose, what is on its way, and what a
// step holds. It belongs to the device's actor, which alone knows what is being read: so nothing is overwritten that
// a step reads, and nothing is read before all of it is there. What comes instead of what is decided here; when it
// travels, by the prefetcher.
//
// Dense groups go round a ring: a slot that was read is for the next group in the program's order that has none, and
// after the last group of a step comes the first one of the next. Experts stay in the slots of their layer until
// another one is needed more.
type Residency struct {
	cargo   *Cargo
	want    func(*Want)
	back    func(*Returned)
	groups  []holding
	slots   []slotState
	segment []shared // by segment
	ring    ring
	policy  *shelf.Policy // of experts
	among   []int32       // that may leave
	loans   []*Loan       // that nobody has
	ahead   *foresight    // of experts; nil: nothing is guessed
	traffic *Traffic
	late    bool // what is on its way was waited for in vain
}

// holding is a group of weights.
type holding struct {
	slot    int // -1: none
	there   bool
	place   int  // in the ring's order; -1: it is no part of it
	guessed bool // its slot is a guess's, and no step has used it
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
	used    int   // most of them that a row chooses
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

// NewResidency returns one that says with want what is to be brought, and with back what the device returns late.
func NewResidency(c *Cargo, want func(*Want), back func(*Returned)) *Residency {
	p, bound := &c.Plan.Parts[0], c.Bound
	r := &Residency{cargo: c, want: want, back: back, traffic: new(Traffic), groups: make([]holding, len(c.Plan.Homes)),
		slots: make([]slotState, len(p.Layout.Slots)), segment: make([]shared, len(bound.Segments)),
		ring: ring{order: p.Ring.Groups, slots: p.Ring.Slots}}
	for i := range r.slots {
		r.slots[i].group = -1
	}
	for g := range c.Plan.Homes {
		r.add(g, c.home(g))
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
	r.ahead = r.foresight(bound)
	return r
}

// CountTo has the residency count what it does there.
func (r *Residency) CountTo(t *Traffic) { r.traffic = t }

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
func (r *Residency) add(g int, home *place.Home) {
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

// Dense are the groups of a segment that all rows need, in order.
func (r *Residency) Dense(segment int) []int { return r.segment[segment].groups }

// Route is the segment that chooses among the experts of this one, if it has any.
func (r *Residency) Route(segment int) (route int, ok bool) {
	s := &r.segment[segment]
	return s.route, len(s.expert) > 0
}

// Streams says whether a segment reads groups that share slots.
func (r *Residency) Streams(segment int) bool { return r.segment[segment].streams }

// Demand has those of groups that are not there brought, as far as slots are free of what the step still needs.
func (r *Residency) Demand(segment int, groups []int) {
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
func (r *Residency) inRing(g int) bool { return r.groups[g].place >= 0 && r.groups[g].slot >= 0 }

// victim is the slot of a layer that is to be overwritten; -1: all are needed.
func (s *shared) victim(r *Residency, needed []int) int {
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
func (r *Residency) expert(g int) int { return r.cargo.home(g).Group.Expert }

// bring makes a slot a group's, whose bytes are still to come.
func (r *Residency) bring(g, at int, u urgency) {
	s := &r.slots[at]
	r.clear(at)
	s.group, s.number, s.asked = g, s.number+1, u
	r.groups[g].slot = at
	if e := r.expert(g); e != ir.Dense {
		r.policy.Arrive(r.segment[r.cargo.home(g).Group.Segment].layer, e)
	}
	if !s.memory {
		r.place(g, at, nil)
	}
	if r.cargo.home(g).Kept() { // the device copies it, and what reads it waits there
		r.groups[g].there = true
		return
	}
	r.want(&Want{item{r.cargo, g, at, s.number}, u})
}

// urge says that a step waits for what is on its way to a slot.
func (r *Residency) urge(at int) {
	switch r.slots[at].asked {
	case demanded:
		return
	case guessed:
		r.ahead.coming--
	}
	r.say(at, demanded)
}

// say tells how urgent now is what is on its way to a slot.
func (r *Residency) say(at int, u urgency) {
	s := &r.slots[at]
	s.asked = u
	r.want(&Want{item{r.cargo, s.group, at, s.number}, u})
}

// clear takes the group from a slot, which is neither leased nor being written to.
func (r *Residency) clear(at int) {
	if s := &r.slots[at]; s.group >= 0 {
		if e := r.expert(s.group); e != ir.Dense {
			r.policy.Leave(r.segment[r.cargo.home(s.group).Group.Segment].layer, e)
		}
		h := &r.groups[s.group]
		h.slot, h.there, h.guessed = -1, false, false
		s.group = -1
	}
}

// place tells the device whose a slot is. That it refuses is a defect.
func (r *Residency) place(g, at int, data [][]byte) {
	if err := r.cargo.model.Place(g, at, data); err != nil {
		panic(fmt.Sprintf("placing group %d in slot %d: %v", g, at, err))
	}
}

// Late says that groups were waited for so long in vain.
func (r *Residency) Late(groups []int, waited time.Duration) error {
	r.late = true
	ref := r.cargo.home(groups[0]).Group.Weights[0]
	return r.cargo.failure(ref, fmt.Errorf("the drive has given nothing of it for %v: check it", waited))
}

// Overdue says that somebody waited in vain, and that nothing has come since.
func (r *Residency) Overdue() bool { return r.late }

// Landed hears of the end of an item's way.
func (r *Residency) Landed(m *Landed) {
	r.late = r.late && m.Forsaken() // the drive had no part in that
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
	case s.asked == guessed:
		r.ahead.coming--
		s.asked = ahead
	case s.asked == forsaken && m.Err == nil:
		r.ahead.Wrong() // it was being read
	}
	switch {
	case m.Err != nil:
		r.clear(m.slot)
		return
	case s.memory:
		r.place(m.group, m.slot, m.in(r.cargo.model.Slot(m.slot)))
	}
	r.groups[m.group].there = true
}

// Returned, from the device's own threads to its actor: they do not read any more what they had on loan.
type Returned struct {
	Of   *Residency
	Loan *Loan
}

func (*Returned) Late() {}

// Loan is groups that the device reads for a part of a segment. Nothing comes to their slots until it is settled.
type Loan struct {
	Groups []int
	meet   atomic.Uint32 // where the device's actor and whoever calls done find out which of them comes second
	done   func()        // bound once
}

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
	l := new(Loan)
	l.done = func() {
		if l.meet.Swap(1) == 1 {
			r.back(&Returned{r, l})
		}
	}
	return l
}

// Part is the device's work on a loan.
func (l *Loan) Part(segment int, last bool) backend.Work {
	l.meet.Store(0)
	return backend.Work{Segment: segment, Groups: l.Groups, Last: last, Done: l.done}
}

// Returned says, once the device has its work, whether it is done with it.
func (l *Loan) Returned() bool { return l.meet.Swap(1) == 1 }

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

// Fill asks for groups of the ring while it has free slots.
func (r *Residency) Fill() {
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
func (r *Residency) rewind(to int) {
	n, window := len(r.ring.order), len(r.ring.slots)
	for _, at := range r.ring.slots {
		s := &r.slots[at]
		if s.group >= 0 && s.leases == 0 && r.groups[s.group].there && (r.groups[s.group].place-to+n)%n >= window {
			r.clear(at)
		}
	}
	r.ring.next = to
	r.Fill()
	if at := r.groups[r.ring.order[to]].slot; at >= 0 {
		r.urge(at)
	}
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
		r.chose(s, experts)
	}
	r.policy.Touch(s.layer, s.touched)
	return need
}

// Experts that are likely to be chosen come while the drive has nothing else to do: the prefetcher sends a guess only
// when nothing is on its way. A few wait there for their turn, since the device's actor computes and does not hear of
// each that lands. Those that wait when their layer has chosen others are forsaken.

const (
	mostGuesses = 4 // that have not landed, of all layers
	inLayer     = 2 // of one
)

// foresight is what guesses are made from, and what has become of them.
type foresight struct {
	*foresee.Predictor
	layers []*shared // by the predictor's layer
	routes []int     // by segment that routes: the predictor's layer; -1: none
	had    []bool    // scratch, by expert
	coming int       // guesses that have not landed
}

// foresight is that of the model's experts that share slots; nil: there are none, or the device foresees nothing.
func (r *Residency) foresight(bound *ir.Bound) *foresight {
	if _, ok := r.cargo.model.(backend.Foreseer); !ok || len(r.cargo.Plan.Parts[0].Shelves) == 0 {
		return nil
	}
	f := &foresight{routes: make([]int, len(bound.Segments))}
	for i := range f.routes {
		f.routes[i] = -1
	}
	var layers []foresee.Layer
	for _, p := range r.cargo.Plan.Parts[0].Shelves {
		s := &r.segment[p.Segment]
		for _, n := range bound.Segments[s.route].Nodes {
			if n.Op == ir.Route {
				s.used = n.Route.Used
			}
		}
		f.routes[s.route] = len(layers)
		f.layers, layers = append(f.layers, s), append(layers, foresee.Layer{Experts: len(s.expert), Used: s.used})
		f.had = append(f.had, make([]bool, max(0, len(s.expert)-len(f.had)))...)
	}
	f.Predictor = foresee.New(layers)
	return f
}

// Begin says which tokens the rows of the next step are; one below 0 is not known.
func (r *Residency) Begin(tokens []int32) {
	if r.ahead != nil {
		r.ahead.Begin(tokens)
		r.guess()
	}
}

// Foresees says whether margins of a route are of use.
func (r *Residency) Foresees(route int) bool { return r.ahead != nil && r.ahead.routes[route] >= 0 }

// Foreseen says what a route makes of the stream that the layer before its own takes in, or, late, leaves.
func (r *Residency) Foreseen(route int, late bool, margins []int8) {
	r.ahead.Scores(r.ahead.routes[route], late, margins)
	r.guess()
}

// chose has the predictor learn what the rows of the step chose in a layer, and forsakes what they did not.
func (r *Residency) chose(s *shared, experts []int32) {
	had := r.ahead.had[:len(s.expert)]
	for e, g := range s.expert {
		h := &r.groups[g]
		had[e] = h.there && !h.guessed
		switch {
		case s.chosen[e] && h.guessed:
			h.guessed = false
			r.ahead.Right()
			r.traffic.right.Add(1)
		case !s.chosen[e] && h.slot >= 0 && !h.there && r.slots[h.slot].asked == guessed:
			r.ahead.coming--
			r.say(h.slot, forsaken)
		}
	}
	r.ahead.Learn(s.layer, experts, had)
}

// guess has likely experts brought, while few are on their way.
func (r *Residency) guess() {
	for r.ahead.coming < mostGuesses {
		l, e, ok := r.ahead.Next(r.has)
		if !ok {
			return
		}
		s := r.ahead.layers[l]
		at := r.spare(s)
		if at < 0 {
			return
		}
		r.ahead.coming++
		r.traffic.guesses.Add(1)
		r.groups[s.expert[e]].guessed = true
		r.bring(s.expert[e], at, guessed)
	}
}

func (r *Residency) has(l, expert int) bool {
	return r.groups[r.ahead.layers[l].expert[expert]].slot >= 0
}

// spare is a slot for a guess: -1: none that could be missed. A row's experts have slots left in any case.
func (r *Residency) spare(s *shared) int {
	r.among = r.among[:0]
	coming, free := 0, -1
	for _, i := range s.shelf {
		switch x := &r.slots[i]; {
		case x.group < 0:
			free = i
		case !r.groups[x.group].there:
			coming++
		case x.leases == 0 && !r.ahead.Keeps(s.layer, r.expert(x.group)):
			r.among = append(r.among, int32(r.expert(x.group)))
		}
	}
	switch {
	case coming >= min(inLayer, len(s.shelf)-s.used):
		return -1
	case free >= 0:
		return free
	case len(r.among) == 0:
		return -1
	}
	return r.groups[s.expert[r.policy.Victim(s.layer, r.among)]].slot
}
