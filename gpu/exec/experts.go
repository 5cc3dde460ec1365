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

// entryExperts is what a step needs for experts that move, by segment: the choices of routes, and the memory that parts
// of a segment read.
type entryExperts struct {
	choices []*choice
	regions [][]*region
	part    int // number of the next part
}

// region is memory that a part of a segment of experts reads: tables of the addresses of the part's matrices, and the
// ids of the pairs of a row and an expert that the part computes.
type region struct {
	b   *driver.Buffer
	ids int // offset of the ids of pairs
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

// choice is the experts that a step's rows go to, in memory that the host reads.
type choice struct {
	of      *plan.Choice
	b       *driver.Buffer // ids, and their weights behind them
	experts []int32        // as Work.Chosen is told them
	known   atomic.Bool
}

// layChoices takes memory for the choices that decide which groups are needed.
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

// record adds to a recording the copy of the choice to memory that the host reads.
func (c *choice) record(r driver.Recording, scratch *driver.Buffer, rows int) {
	n := uint64(4 * c.of.Used * rows)
	ids, weights := c.of.Offsets()
	r.BarrierAll()
	r.Copy(c.b, 0, scratch, uint64(ids), n)
	r.Copy(c.b, c.b.Size/2, scratch, uint64(weights), n)
	r.BarrierToHost()
}

// read reads the choice, by row. An expert whose weight is 0 was not chosen: absent stands in its place.
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

// hear submits the copy of a choice behind its route, and the watcher tells it to the caller.
func (m *model) hear(route int, s *backend.Step, tell func([]int32)) error {
	x := m.ring.of(s)
	c := x.experts.choices[route]
	value, err := m.ask(x, route)
	if err != nil {
		return err
	}
	rows := s.Rows()
	m.ends <- ended{value: value, told: func(err error) {
		if err != nil { // the step reports the error; who waits for a choice must go on
			c.experts = slices.Repeat([]int32{absent}, rows*c.of.Used)
			tell(c.experts)
			return
		}
		tell(c.read(rows))
	}}
	return nil
}

// ask submits the copy of a choice together with the segments that were enqueued before: the device pauses between
// submissions.
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

// learn returns the choice of a segment's route. If nobody asked for it before, it copies it and waits.
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

// mixes says whether a segment has experts that move.
func (m *model) mixes(segment int) bool { return m.layout.plan.RouteOf[segment] != absent }

// used is how many experts a row of a segment goes to.
func (m *model) used(segment int) int {
	return m.layout.plan.Routes[m.layout.plan.RouteOf[segment]].Used
}

// fillRegion writes, for a part, where its experts' matrices lie, and which pairs it computes. A pair with a weight of
// 0 is computed with any expert of each part: its result must be a number, since it is multiplied by 0.
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
