//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// portion is what a recording has of the launches of its segments.
type portion uint8

const (
	whole  portion = iota
	before         // what a divided segment does before its groups
	among          // what it does with some of them
	after
)

// cut is the launches of a segment that are there for each group, or for each part: [from, to) of all. In a segment
// whose groups stay it is empty.
type cut struct{ from, to int }

// takes says whether a recording has a launch.
func (m *model) takes(s *shape, i int) bool {
	l := &m.launches[i]
	c := m.cuts[l.segment]
	switch {
	case l.segment < s.from || l.segment > s.to:
		return false
	case s.portion == before:
		return i < c.from
	case s.portion == among:
		return c.from <= i && i < c.to && (l.piece == 0 || l.piece-1 == s.group)
	case s.portion == after:
		return i >= c.to
	}
	return true
}

// divide finds the cuts, and keeps what launches between them touch from being overwritten by others of them.
func (m *model) divide(segments int) {
	m.cuts = make([]cut, segments)
	for i := range m.launches {
		if l := &m.launches[i]; l.piece > 0 || l.parted {
			c := &m.cuts[l.segment]
			if c.to == 0 {
				c.from = i
			}
			c.to = i + 1
		}
	}
	for i := range m.launches {
		c := m.cuts[m.launches[i].segment]
		if i < c.from || i >= c.to {
			continue
		}
		for _, b := range slices.Concat(m.launches[i].reads, m.launches[i].writes) {
			b.First, b.Last = min(b.First, c.from), max(b.Last, c.to-1)
		}
	}
}

// spot is where a matrix lies that moves: in its group's memory, or, of experts, in the tables of a region.
type spot struct {
	group int // absent: it is of experts
	at    uint64
}

// matrix is one as the recording reads it.
func (x *recorder) matrix(w *Matrix) *Matrix {
	s, moves := x.m.spots[w]
	if !moves || x.dry {
		return w
	}
	c := *w
	if s.group == absent {
		c.Address = x.region.b.Address + s.at
	} else {
		c.Address = x.m.base(&x.m.groups[s.group]) + s.at
	}
	return &c
}

// region is what a part of a segment of experts reads: where their matrices lie, table after table, and for which of
// the pairs of a row and an expert they are there.
type region struct {
	b   *vk.Buffer
	ids int // offset
}

// list is the address of the ids.
func (r *region) list() uint64 { return r.b.Address + uint64(r.ids) }

// regionOf is that of a part, by its number in the segment.
func (m *model) regionOf(x *slot, segment, part int) (*region, error) {
	all := x.regions[segment]
	for len(all) <= part {
		g := m.parts.Matrices[segment]
		r := &region{ids: 8 * len(g) * len(m.groups[g[0]].matrices)}
		var err error
		r.b, err = m.memory.take(vk.Stepwise, uint64(r.ids+4*m.capacity(false)*m.used(segment)), "experts")
		if err != nil {
			return nil, err
		}
		m.account.Scratch += int64(r.b.Size)
		all = append(all, r)
	}
	x.regions[segment] = all
	return all[part], nil
}

// choice is which experts the rows of a step go to, as the host hears it.
type choice struct {
	used    int
	route   *chosen
	b       *vk.Buffer // ids, and their weights behind them
	experts []int32    // as Model.Chosen tells
	known   atomic.Bool
}

// layChoices makes room to hear of choices that decide which groups are needed.
func (m *model) layChoices(x *slot, p *ir.Bound) error {
	x.choices, x.regions = make([]*choice, len(p.Segments)), make([][]*region, len(p.Segments))
	for s, route := range m.routes {
		if route == nil {
			continue
		}
		bytes := 4 * route.used * m.capacity(false)
		b, err := m.memory.take(vk.Staging, uint64(2*bytes), "the choice of experts")
		if err != nil {
			return err
		}
		m.account.Scratch += int64(b.Size)
		x.choices[s] = &choice{used: route.used, route: route, b: b}
	}
	return nil
}

// record copies the choice to where the host reads it.
func (c *choice) record(x *recorder) {
	n := uint64(4 * c.used * x.shape.rows)
	x.r.BarrierAll()
	x.r.Copy(c.b, 0, x.m.scratch, uint64(c.route.ids.Offset), n)
	x.r.Copy(c.b, c.b.Size/2, x.m.scratch, uint64(c.route.weights.Offset), n)
	x.r.BarrierToHost()
}

// hear reads the choice. An expert whose weight is 0 is none.
func (c *choice) hear(rows int) []int32 {
	ids, weights := words[uint32](c.b, 0, rows*c.used), words[float32](c.b, int(c.b.Size/2), rows*c.used)
	c.experts = c.experts[:0]
	for r := range rows {
		for i := r * c.used; i < (r+1)*c.used; i++ {
			if weights[i] != 0 {
				c.experts = append(c.experts, int32(ids[i]))
			}
		}
		for len(c.experts) < (r+1)*c.used {
			c.experts = append(c.experts, absent)
		}
	}
	c.known.Store(true)
	return c.experts
}

// Chosen has the choice copied behind the route, and the watcher tell of it.
func (m *model) Chosen(route int, s *backend.Step, tell func([]int32)) error {
	if route < 0 || route >= len(m.program.Segments) || m.routes == nil || m.routes[route] == nil {
		return fmt.Errorf("segment %d is no route that is computed here, of experts that share slots", route)
	}
	x := m.slot(s)
	c := x.choices[route]
	value, err := m.ask(x, route)
	if err != nil {
		return err
	}
	rows := len(s.Tokens)
	m.ends <- ended{value: value, told: func(err error) {
		if err != nil { // the step says so: whoever waits goes on to its end
			c.experts = slices.Repeat([]int32{absent}, rows*c.used)
			tell(c.experts)
			return
		}
		tell(c.hear(rows))
	}}
	return nil
}

// ask submits the copy of a choice, with what was enqueued before: for each submit the device pauses.
func (m *model) ask(x *slot, route int) (uint64, error) {
	sh := x.shape
	sh.from, sh.to, sh.tells = route, route, true
	if x.from < 0 {
		return m.submit(x, 0, sh)
	}
	before := x.shape
	before.from, before.to, x.from = x.from, x.to, -1
	return m.submit(x, 0, before, sh)
}

// learn waits for a choice that nobody asked for.
func (m *model) learn(x *slot, segment int) (*choice, error) {
	route := m.routeOf[segment]
	c := x.choices[route]
	if c.known.Load() {
		return c, nil
	}
	value, err := m.ask(x, route)
	if err == nil {
		err = m.device.queue.wait(value)
	}
	if err == nil {
		c.hear(len(x.step.Tokens))
	}
	return c, err
}

var errWhole = errors.New("parts of a segment: the model was compiled without slots, all is there")

// Part submits a part. Its groups are leased until the watcher has seen its end.
func (m *model) Part(w backend.Work, s *backend.Step) error {
	e := ended{release: w.Done, group: absent, asked: time.Now()}
	moving := m.moving(w.Groups)
	var err error
	e.value, err = m.part(&w, s)
	switch {
	case w.Done == nil:
	case e.value == 0 || moving == absent:
		w.Done()
	default:
		e.group = moving
		m.ends <- e
	}
	return err
}

// moving is the first of some groups that moves.
func (m *model) moving(groups []int) int {
	for _, g := range groups {
		if g >= 0 && g < len(m.groups) && m.groups[g].moves {
			return g
		}
	}
	return absent
}

// part returns the value of the queue's timeline when nothing reads the groups any more; 0: nothing does.
func (m *model) part(w *backend.Work, s *backend.Step) (uint64, error) {
	if m.config.Slots == nil {
		return 0, errWhole
	}
	first, err := m.parts.Take(w)
	if err != nil {
		return 0, err
	}
	if !m.config.Computes(w.Segment) {
		return 0, fmt.Errorf("segment %d is not computed here", w.Segment)
	}
	x := m.slot(s)
	if first {
		err = errors.Join(m.begin(x), m.flush(x))
		m.parting, x.part = x, 0
	} else if m.parting != x {
		err = fmt.Errorf("another part of segment %d is of another step", w.Segment)
	}
	if err != nil {
		return 0, err
	}
	for _, g := range w.Groups {
		if err := m.there(g); err != nil {
			return 0, err
		}
	}
	if err := m.complete(x, w); err != nil {
		return 0, err
	}
	shapes, err := m.cutUp(x, w, first)
	if err != nil || len(shapes) == 0 {
		return 0, err
	}
	copied, behind := m.behind(w.Groups)
	x.behind, x.moving = behind, m.moving(w.Groups)
	value, err := m.submit(x, copied, shapes...)
	x.behind, x.moving = absent, absent
	for _, g := range w.Groups {
		if r := m.groups[g].room; r != absent {
			m.rooms[r].used = max(m.rooms[r].used, value)
		}
	}
	return value, err
}

// complete is an error if a last part comes without groups that are needed.
func (m *model) complete(x *slot, w *backend.Work) error {
	if !w.Last {
		return nil
	}
	var c *choice
	if m.mixes(w.Segment) {
		var err error
		if c, err = m.learn(x, w.Segment); err != nil {
			return err
		}
	}
	return m.parts.Complete(func(g *ir.Group) bool {
		if g.Expert != ir.Dense {
			return c != nil && slices.Contains(c.experts, int32(g.Expert))
		}
		return !m.program.Segments[g.Segment].Kind.Ends() || len(x.step.Wanted) > 0
	})
}

// mixes says whether experts of a segment move.
func (m *model) mixes(segment int) bool { return m.routeOf[segment] != absent }

// behind is the value of copies at which groups are there, and the one that comes last.
func (m *model) behind(groups []int) (copied uint64, last int) {
	last = absent
	for _, g := range groups {
		if m.groups[g].copied > copied {
			copied, last = m.groups[g].copied, g
		}
	}
	return copied, last
}

// cutUp lists the recordings of a part.
func (m *model) cutUp(x *slot, w *backend.Work, first bool) (all []shape, err error) {
	sh := x.shape
	sh.from, sh.to = w.Segment, w.Segment
	c := m.cuts[w.Segment]
	if c.to == 0 { // all groups stay, or there is one
		if !w.Last {
			return nil, nil
		}
		for _, g := range w.Groups {
			if m.groups[g].moves {
				sh.group, sh.room = g, m.groups[g].room
			}
		}
		return append(all, sh), nil
	}
	if first {
		sh.portion = before
		all = append(all, sh)
	}
	sh.portion = among
	switch {
	case len(w.Groups) == 0:
	case m.mixes(w.Segment):
		sh.part = x.part
		if err = m.fillRegion(x, w); err != nil {
			return nil, err
		}
		x.part++
		all = append(all, sh)
	default:
		for _, g := range w.Groups {
			sh.group, sh.room = g, m.groups[g].room
			all = append(all, sh)
		}
	}
	if w.Last {
		sh.portion, sh.group, sh.room, sh.part = after, 0, 0, 0
		all = append(all, sh)
	}
	return all, nil
}

// fillRegion tells kernels where the experts of a part lie, and which pairs are theirs. One with a weight of 0 is
// computed by any of them: what is multiplied by 0 has to be a number.
func (m *model) fillRegion(x *slot, w *backend.Work) error {
	c, err := m.learn(x, w.Segment)
	if err != nil {
		return err
	}
	r, err := m.regionOf(x, w.Segment, x.part)
	if err != nil {
		return err
	}
	experts := len(m.parts.Matrices[w.Segment])
	tables := words[uint64](r.b, 0, r.ids/8)
	clear(tables)
	for _, g := range w.Groups {
		e := m.parts.Groups[g].Expert
		if e == ir.Dense {
			continue
		}
		for i, l := range m.groups[g].matrices {
			tables[i*experts+e] = m.base(&m.groups[g]) + l.at
		}
	}
	pairs := len(x.step.Tokens) * c.used
	ids, weights := words[uint32](c.b, 0, pairs), words[float32](c.b, int(c.b.Size/2), pairs)
	list := words[uint32](r.b, r.ids, x.shape.rows*c.used)
	for i := range list {
		list[i] = noExpert
		switch {
		case i >= pairs:
		case weights[i] == 0:
			list[i] = uint32(m.parts.Groups[w.Groups[0]].Expert)
		case tables[ids[i]] != 0:
			list[i] = ids[i]
		}
	}
	return nil
}

// noExpert is the id of no expert (shaders/group.comp).
const noExpert = 1<<32 - 1

// used is how many experts a row of a segment goes to.
func (m *model) used(segment int) int { return m.routes[m.routeOf[segment]].used }
