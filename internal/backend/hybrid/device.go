// Package hybrid is a device that computes a model on two: some segments in the program's memory, the others on a
// device with memory of its own. Each has the weights and caches of its own segments, and its own arithmetic.
//
// Who drives it sees one device (docs/adr/0028). What is computed on the host is done when Run returns; so values
// wait for nobody on their way to the device, and the next step's begin while it computes.
package hybrid

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// Device computes what Config.Devices gives to the first of two on Host, and all else itself. Host works within
// Run.
type Device struct {
	backend.Device
	Host backend.Device
}

// Traits are the device's, with those of its host.
func (d *Device) Traits() backend.Traits {
	t, host := d.Device.Traits(), d.Host.Traits()
	t.Devices = []backend.Traits{host, t}
	return t
}

// Close closes both.
func (d *Device) Close() error { return errors.Join(d.Device.Close(), d.Host.Close()) }

// Compile compiles the program for one device, or parts of it for two.
func (d *Device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if c.Devices == nil {
		return d.Device.Compile(p, c)
	}
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	m := &model{program: p.Program, config: c, entered: -1}
	if err := m.compile(d, p); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *model) compile(d *Device, p *ir.Bound) error {
	onHost, rest, onMain := []int(nil), []int(nil), m.config
	for s := range p.Segments {
		if m.config.Devices[s] == 0 {
			onHost = append(onHost, s)
		} else {
			rest = append(rest, s)
		}
	}
	if d.Device.Traits().Memory != backend.HostMemory && m.config.InPlace() != nil {
		onMain.Weights = nil
	}
	beside := m.config
	beside.Flight, beside.MaxWanted, beside.Kept, beside.Ran = 1, 0, nil, nil
	var err error
	if m.host, err = newSide(d.Host, p, beside, onHost); err != nil {
		return fmt.Errorf("on the host: %w", err)
	}
	if m.main, err = newSide(d.Device, p, onMain, rest); err != nil {
		return err
	}
	m.step, m.Joined = m.host.Steps()[0], backend.Joined{m.host, m.main}
	for _, s := range m.main.Steps() {
		m.ends = append(m.ends, newEnding(s))
	}
	m.sides = make([]*side, len(p.Segments))
	for s := range m.sides {
		if m.sides[s] = m.main; slices.Contains(onHost, s) {
			m.sides[s] = m.host
		}
	}
	return m.border(p)
}

// border finds the values that go from one side to the other: each just after the segment that writes it, since devices
// keep it no longer for others, and just before the first on the other side that reads it.
func (m *model) border(p *ir.Bound) error {
	n := len(p.Segments)
	m.takes, m.hands, m.writers = make([][]*crossing, n), make([][]*crossing, n), make([]int, len(p.Widths))
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			m.writers[p.Segments[s].Nodes[i].Out] = s
		}
	}
	for _, c := range backend.Crossings(p, m.config.Devices) {
		x := &crossing{value: c.Value, width: p.Widths[c.Value], taken: c.To}
		m.hands[c.From], m.takes[c.To] = append(m.hands[c.From], x), append(m.takes[c.To], x)
	}
	return m.room()
}

// room gives values memory for the time between the two sides. What was taken leaves it to those that come after.
func (m *model) room() (err error) {
	areas, bytes := []*area(nil), int64(0)
	for s, list := range m.hands {
		for _, x := range list {
			i := slices.IndexFunc(areas, func(a *area) bool { return a.width == x.width && a.until <= s })
			if i < 0 {
				i, areas = len(areas), append(areas, &area{width: x.width})
				bytes += int64(4 * x.width * m.config.MaxRows)
			}
			areas[i].until = x.taken
			areas[i].of = append(areas[i].of, x)
		}
	}
	if m.memory, err = mem.Alloc(bytes); err != nil {
		return err
	}
	all := floats(m.memory)
	for _, a := range areas {
		n := a.width * m.config.MaxRows
		for _, x := range a.of {
			x.rows = all[:n:n]
		}
		all = all[n:]
	}
	return nil
}

// area is memory that values have one after another.
type area struct {
	width int
	until int // the segment before which the last of them is taken
	of    []*crossing
}

// side is a device with what it computes of a program.
type side struct {
	backend.Model
	groups []int  // by group of the whole program: its number here; absent: it is not here
	slots  []int  // by slot, likewise
	uses   []bool // by weight: it is brought here
	part   []int  // of groups, by their numbers here
}

const absent = -1

func newSide(d backend.Device, p *ir.Bound, c backend.Config, segments []int) (x *side, err error) {
	x = &side{}
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
	c.Segments, c.Devices = segments, nil
	if c.Slots != nil {
		if err := x.shared(p, &c, whole, here, back); err != nil {
			return x, err
		}
		if c.Slots, err = x.room(c, here, back, d.Traits().Shares); err != nil {
			return x, err
		}
	}
	kept := c.Kept
	c.Kept = nil
	for _, g := range kept {
		if x.groups[g] == absent {
			return x, fmt.Errorf("group %d is kept, and is not computed with there", g)
		}
		c.Kept = append(c.Kept, x.groups[g])
	}
	if tell := c.Ran; tell != nil {
		c.Ran = func(r backend.Ran) {
			if r.Group >= 0 { // else it is none that shares slots
				r.Group = back[r.Group]
			}
			tell(r)
		}
	}
	x.Model, err = d.Compile(p, c)
	return x, err
}

// name is what a group is known by everywhere.
type name struct {
	segment, expert, piece int
	use                    ir.Use
}

func nameOf(g *ir.Group) name { return name{g.Segment, g.Expert, g.Piece, g.Use} }

// shared refuses what does not work: weights of both sides that share slots on one of them. The other one would have to
// be brought them, too, unless it looks them up in Tables.
func (x *side) shared(p *ir.Bound, c *backend.Config, whole, here []ir.Group, back []int) error {
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

// room numbers the slots that are here. What is here of weights that the whole program has in a group of the other side
// gets a slot of its own, or is looked up in Tables.
func (x *side) room(c backend.Config, here []ir.Group, back []int, shares bool) (slots [][]int, err error) {
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
