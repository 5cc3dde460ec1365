package tiers

import "github.com/sluice-ai/sluice/stages/place"

// ring is the slots that dense groups use in turn: a slot that was read goes to the next group in the program's order
// that has none. After the last group of a step comes the first one of the next step.
type ring struct {
	o     *occupancy
	order []int // groups
	slots []int
	next  int // index in order from which a group without a slot is looked for
}

func newRing(o *occupancy, p *place.Ring) ring {
	for i, g := range p.Groups {
		o.groups[g].place = i
	}
	return ring{o: o, order: p.Groups, slots: p.Slots}
}

// holds says whether a group has one of the slots.
func (r *ring) holds(g int) bool { return r.o.groups[g].place >= 0 && r.o.groups[g].slot >= 0 }

// fill asks for groups while there are free slots.
func (r *ring) fill() {
	n := len(r.order)
	for _, at := range r.slots {
		if r.o.slots[at].group >= 0 {
			continue
		}
		for range n {
			if r.o.groups[r.order[r.next]].slot < 0 {
				break
			}
			r.next = (r.next + 1) % n
		}
		g := r.order[r.next]
		if r.o.groups[g].slot >= 0 {
			return // all have slots
		}
		r.o.bring(g, at, ahead)
		r.next = (r.next + 1) % n
	}
}

// rewind turns the ring to a group that a step needs out of turn, because an earlier step was given up or the group
// could not be read. Groups that are not among the next ones, as many as there are slots, leave their slots.
func (r *ring) rewind(to int) {
	n, window := len(r.order), len(r.slots)
	for _, at := range r.slots {
		s := &r.o.slots[at]
		if s.group >= 0 && s.leases == 0 && r.o.groups[s.group].there && (r.o.groups[s.group].place-to+n)%n >= window {
			r.o.clear(at)
		}
	}
	r.next = to
	r.fill()
	if at := r.o.groups[r.order[to]].slot; at >= 0 {
		r.o.urge(at)
	}
}
