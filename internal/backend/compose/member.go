package compose

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// member is a device with the segments of a program that it computes.
type member struct {
	backend.Model
	device int // by number
	ring   []*backend.Step
	ends   bool   // the program ends here
	own    bool   // the device has memory of its own
	groups []int  // by group of the whole program: its number here; absent: it is not here
	slots  []int  // by slot, likewise
	uses   []bool // by weight: it is uploaded here
	part   []int  // of groups, by their numbers here
}

const absent = -1

// newMember compiles some segments for a device. tell hears what ran there.
func newMember(d backend.Device, p *ir.Bound, c backend.Config, segments []int, tell func(*member, backend.Ran)) (
	*member, error) {
	traits := d.Traits()
	x := &member{own: traits.Memory == backend.OwnMemory}
	x.uses, _, _ = p.Only(segments).Used()
	whole, here := p.On(p.All()), p.On(segments)
	x.groups, x.slots = make([]int, len(whole)), make([]int, len(c.Slots))
	back, numbers := slices.Repeat([]int{absent}, len(here)), map[name]int{}
	for h := range here {
		numbers[nameOf(&here[h])] = h
	}
	for g := range whole {
		x.groups[g] = absent
		if h, ok := numbers[nameOf(&whole[g])]; ok {
			x.groups[g], back[h] = h, g
		}
	}
	c.Segments, c.Devices, c.Flight = segments, nil, min(c.Flight, traits.Flight)
	if x.ends = segments[len(segments)-1] == len(p.Segments)-1; !x.ends {
		c.MaxWanted = 0
	}
	if c.InPlace() != nil && traits.Memory != backend.HostMemory {
		c.Weights = nil
	}
	var err error
	if c.Slots != nil {
		if err = x.shared(p, &c, whole, here, back); err != nil {
			return x, err
		}
		if c.Slots, err = x.room(c, here, back, traits.Shares); err != nil {
			return x, err
		}
	}
	kept := c.Kept
	c.Kept = nil
	for _, g := range kept {
		if g >= 0 && g < len(x.groups) && x.groups[g] != absent {
			c.Kept = append(c.Kept, x.groups[g])
		}
	}
	if c.Ran != nil {
		c.Ran = func(r backend.Ran) {
			if r.Group >= 0 { // else it is none that shares slots
				r.Group = back[r.Group]
			}
			tell(x, r)
		}
	}
	if x.Model, err = d.Compile(p, c); err == nil {
		x.ring = x.Steps()
	}
	return x, err
}

// step is the device's own for one of the composition's ring. What computes within Run has fewer, and ends each
// before the next one begins.
func (x *member) step(i int) *backend.Step { return x.ring[i%len(x.ring)] }

// name is what a group is known by everywhere.
type name struct {
	segment, expert, piece int
	use                    ir.Use
}

func nameOf(g *ir.Group) name { return name{g.Segment, g.Expert, g.Piece, g.Use} }

// shared refuses what is not supported: a weight that several devices use, in a slot that groups share on one of them.
// The other devices would need each placed group, too, unless they look the weight up in Tables.
func (x *member) shared(p *ir.Bound, c *backend.Config, whole, here []ir.Group, back []int) error {
	own := c.Own(len(whole))
	moves := make([]bool, len(p.Weights)) // elsewhere
	for g := range whole {
		l, shares := x.groups[g], whole[g].Use == ir.Matrix && !own[g]
		if shares && l != absent && len(here[l].Weights) != len(whole[g].Weights) {
			return fmt.Errorf("%s: %w with weights of another device's segments", &p.Segments[whole[g].Segment], errMoves)
		}
		for _, r := range whole[g].Weights {
			moves[r] = moves[r] || shares && l == absent
		}
	}
	for l, g := range back {
		for _, r := range here[l].Weights {
			if moves[r] && !(here[l].Use == ir.Table && c.Uploaded().Tables != nil && (g == absent || !own[g])) {
				return fmt.Errorf("%s: %w on another device", p.Weights[r].Name, errMoves)
			}
		}
	}
	return nil
}

var errMoves = fmt.Errorf("its group shares slots: %w", errors.ErrUnsupported)

// room numbers the slots that are here. A weight that is used here, but is in a group of another device in the whole
// program, gets a slot of its own unless it is looked up in Tables.
func (x *member) room(c backend.Config, here []ir.Group, back []int, shares bool) (slots [][]int, err error) {
	slots = [][]int{}
	placed := make([]bool, len(here))
	for s, fit := range c.Slots {
		var groups []int
		for _, g := range fit {
			if x.groups[g] != absent {
				groups, placed[x.groups[g]] = append(groups, x.groups[g]), true
			}
		}
		if x.slots[s] = absent; len(groups) == 0 {
			continue
		}
		if len(groups) < len(fit) {
			return nil, fmt.Errorf("slot %d is for groups of two devices", s)
		}
		x.slots[s] = len(slots)
		slots = append(slots, groups)
	}
	for h, g := range back {
		switch {
		case placed[h]:
		case g == absent && !(shares && here[h].Use == ir.Table && c.Uploaded().Tables != nil):
			slots = append(slots, []int{h})
		default:
			for _, r := range here[h].Weights {
				x.uses[r] = false
			}
		}
	}
	return slots, nil
}
