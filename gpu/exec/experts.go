package exec

import (
	"slices"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// entryExperts is, of experts that move, by segment: the choices of routes, and what the parts of a segment read.
type entryExperts struct {
	choices []*choice
	regions [][]*region
	part    int // number of the next one
}

// region is memory that a part of a segment of experts reads: where their matrices lie, table after table, and for
// which of the pairs of a row and an expert they are there.
type region struct {
	b   *driver.Buffer
	ids int // offset
}

// regionOf returns the region of a part, by its number in the segment.
func (m *model) regionOf(x *entry, segment, part int) (*region, error) {
	all := x.experts.regions[segment]
	for len(all) <= part {
		g := m.weights.parts.Matrices[segment]
		r := &region{ids: 8 * len(g) * len(m.weights.groups[g[0]].matrices)}
		var err error
		b := m.layout.memory
		r.b, err = b.take(driver.Stepwise, uint64(r.ids+4*m.layout.plan.Capacity(false)*m.used(segment)), "experts")
		if err != nil {
			return nil, err
		}
		b.account.Scratch += int64(r.b.Size)
		all = append(all, r)
	}
	x.experts.regions[segment] = all
	return all[part], nil
}

// choice is which experts the rows of a step go to, as the host reads it.
type choice struct {
	of      *plan.Choice
	b       *driver.Buffer // ids, and their weights behind them
	experts []int32        // as Work.Chosen hears
	known   atomic.Bool
}

// layChoices makes room for the choices that decide which groups are needed.
func (m *model) layChoices(x *entry) error {
	p := m.layout.plan
	x.experts.choices, x.experts.regions = make([]*choice, len(p.Routes)), make([][]*region, len(p.Routes))
	for s, route := range p.Routes {
		if route == nil {
			continue
		}
		bytes := 4 * route.Used * p.Capacity(false)
		b, err := m.layout.memory.take(driver.Staging, uint64(2*bytes), "the choice of experts")
		if err != nil {
			return err
		}
		m.layout.memory.account.Scratch += int64(b.Size)
		x.experts.choices[s] = &choice{of: route, b: b}
	}
	return nil
}

// record copies the choice to where the host reads it.
func (c *choice) record(r driver.Recording, scratch *driver.Buffer, rows int) {
	n := uint64(4 * c.of.Used * rows)
	ids, weights := c.of.Offsets()
	r.BarrierAll()
	r.Copy(c.b, 0, scratch, uint64(ids), n)
	r.Copy(c.b, c.b.Size/2, scratch, uint64(weights), n)
	r.BarrierToHost()
}

// read reads the choice. An expert whose weight is 0 is none.
func (c *choice) read(rows int) []int32 {
	used := c.of.Used
	ids, weights := words[uint32](c.b, 0, rows*used), words[float32](c.b, int(c.b.Size/2), rows*used)
	c.experts = c.experts[:0]
	for r := range rows {
		for i := r * used; i < (r+1)*used; i++ {
			if weights[i] != 0 {
				c.experts = append(c.experts, int32(ids[i]))
			}
		}
		for len(c.experts) < (r+1)*used {
			c.experts = append(c.experts, absent)
		}
	}
	c.known.Store(true)
	return c.experts
}

// routes says whether a segment chooses among experts that share slots.
func (m *model) routes(segment int) bool {
	return segment >= 0 && segment < len(m.layout.plan.Routes) && m.layout.plan.Routes[segment] != nil
}

// hear has the choice copied behind the route, and the watcher tell of it.
func (m *model) hear(route int, s *backend.Step, tell func([]int32)) error {
	x := m.ring.of(s)
	c := x.experts.choices[route]
	value, err := m.ask(x, route)
	if err != nil {
		return err
	}
	rows := s.Rows()
	m.ends <- ended{value: value, told: func(err error) {
		if err != nil { // the step says so: whoever waits goes on to its end
			c.experts = slices.Repeat([]int32{absent}, rows*c.of.Used)
			tell(c.experts)
			return
		}
		tell(c.read(rows))
	}}
	return nil
}

// ask submits the copy of a choice, with what was enqueued before: for each submission the device pauses.
func (m *model) ask(x *entry, route int) (uint64, error) {
	key := recorded{Shape: x.shape, tells: true}
	key.From, key.To = route, route
	if x.from < 0 {
		return m.submit(x, 0, key)
	}
	before := recorded{Shape: x.shape}
	before.From, before.To, x.from = x.from, x.to, -1
	return m.submit(x, 0, before, key)
}

// learn waits for a choice that was not asked for.
func (m *model) learn(x *entry, segment int) (*choice, error) {
	route := m.layout.plan.RouteOf[segment]
	c := x.experts.choices[route]
	if c.known.Load() {
		return c, nil
	}
	value, err := m.ask(x, route)
	if err == nil {
		err = m.device.queue.wait(value)
	}
	if err == nil {
		c.read(x.step.Rows())
	}
	return c, err
}

// mixes says whether experts of a segment move.
func (m *model) mixes(segment int) bool { return m.layout.plan.RouteOf[segment] != absent }

// used is how many experts a row of a segment goes to.
func (m *model) used(segment int) int {
	return m.layout.plan.Routes[m.layout.plan.RouteOf[segment]].Used
}

// fillRegion tells kernels where the experts of a part lie, and which pairs are theirs. One with a weight of 0 is
// computed by any of them: what is multiplied by 0 has to be a number.
func (m *model) fillRegion(x *entry, w *backend.Work) error {
	c, err := m.learn(x, w.Segment)
	if err != nil {
		return err
	}
	r, err := m.regionOf(x, w.Segment, x.experts.part)
	if err != nil {
		return err
	}
	parts := &m.weights.parts
	experts := len(parts.Matrices[w.Segment])
	tables := words[uint64](r.b, 0, r.ids/8)
	clear(tables)
	for _, g := range w.Groups {
		e := parts.Groups[g].Expert
		if e == ir.Dense {
			continue
		}
		for i, l := range m.weights.groups[g].matrices {
			tables[i*experts+e] = m.weights.base(&m.weights.groups[g]) + l.at
		}
	}
	pairs := x.step.Rows() * c.of.Used
	ids, weights := words[uint32](c.b, 0, pairs), words[float32](c.b, int(c.b.Size/2), pairs)
	list := words[uint32](r.b, r.ids, x.shape.Rows*c.of.Used)
	for i := range list {
		list[i] = kernel.NoExpert
		switch {
		case i >= pairs:
		case weights[i] == 0:
			list[i] = uint32(parts.Groups[w.Groups[0]].Expert)
		case tables[ids[i]] != 0:
			list[i] = ids[i]
		}
	}
	return nil
}
