package actors

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

// cargo is what can be brought to a device for one model. Nobody changes it, but for what the uploader keeps here.
type cargo struct {
	guest  *guest
	model  backend.Model
	homes  []place.Home
	memory *tenure  // of the model's
	ends   []ending // by slot: of the last item that came to its end; the uploader's incarnations share it
}

func newCargo(g *guest) *cargo {
	homes := g.spec.plan.Homes
	slots := len(homes)
	if shared := g.spec.layout.Slots; shared != nil {
		slots = len(shared)
	}
	return &cargo{guest: g, model: g.model, homes: homes, memory: new(tenure), ends: make([]ending, slots)}
}

// ending is how an item's way ended.
type ending struct {
	number uint64
	err    error
}

// loaded are the bytes of the groups that have come home.
func (c *cargo) loaded() (bytes int64) {
	for i := range c.homes {
		if h := &c.homes[i]; h.Slot >= 0 && c.ends[h.Slot].number > 0 {
			bytes += h.Group.Bytes
		}
	}
	return bytes
}

// count adds a piece to the progress of loading. What is streamed is not part of it.
func (c *cargo) count(p *piece) {
	if c.homes[p.home].Slot >= 0 {
		c.guest.progress.Add(int64(p.bytes))
	}
}

// urgency is who waits for an item.
type urgency uint8

const (
	demanded urgency = iota // a step
	ahead                   // a step that will get there
	urgencies
)

// item is a group of weights on its way to a slot.
type item struct {
	of     *cargo
	home   int // of the group
	slot   int
	number uint64 // of the slot's items, from 1; the next one follows only when this one has come to its end
}

// piece is what one read brings: rows of one weight that fit a slab, or any bytes of it that come to lie in a slot.
type piece struct {
	item
	urgency urgency
	ref     ir.Ref
	row     int // through slabs
	source  source.Source
	from    int64
	bytes   int
	slab    int    // noSlab: straight into a slot
	into    []byte // see uring.Request
	head    int
	tries   int // that failed
	way     way
}

func (p *piece) straight() bool { return p.slab < 0 }

// noSlab is the slab of pieces that go straight into a slot.
const noSlab = -1

// useSlab has the piece travel in a slab.
func (p *piece) useSlab(slabs *pin.Arena, slab int) {
	p.slab, p.into, p.head = slab, slabs.Slab(slab), uring.HeadOf(p.from)
}

// pieces are queued by urgency, and in the order in which they came.
type pieces [urgencies][]*piece

func (q *pieces) push(p *piece) { q[p.urgency] = append(q[p.urgency], p) }

func (q *pieces) pop() *piece {
	for i := range q {
		if len(q[i]) > 0 {
			first := q[i][0]
			q[i] = q[i][1:]
			return first
		}
	}
	return nil
}

func (q *pieces) len() (n int) {
	for i := range q {
		n += len(q[i])
	}
	return n
}

// drop forgets what is queued of an item, and returns how much that was.
func (q *pieces) drop(x item) int {
	before := q.len()
	for i := range q {
		q[i] = slices.DeleteFunc(q[i], func(p *piece) bool { return p.item == x })
	}
	return before - q.len()
}

// straightBytes is how much one read brings to a slot: large enough for any drive's full speed, with some under way.
const straightBytes = 1 << 20

// cut divides a group into pieces.
func (x item) cut(slabs *pin.Arena, u urgency) []*piece {
	if memory := x.shared(); memory != nil {
		return x.cutStraight(memory, u)
	}
	var all []*piece
	s, g, grain := x.of.guest.spec, &x.of.homes[x.home].Group, x.of.model.RowGrain()
	for _, ref := range g.Weights {
		w, t := s.bound.Weights[ref], s.file.Tensors[s.bound.Tensors[ref]]
		from, to := g.Rows(&w)
		rowBytes := int(t.Size) / w.Rows
		rows := max((len(slabs.Slab(0))-uring.Slack)/rowBytes/grain, 1) * grain
		for row := from; row < to; row += rows {
			n := min(rows, to-row)
			all = append(all, &piece{
				item: x, urgency: u, ref: ref, row: row, source: s.file.Part(t.Part),
				from: t.Offset + int64(row)*int64(rowBytes), bytes: n * rowBytes,
			})
		}
	}
	return all
}

// shared is the memory of the item's slot, if it is one that groups share and has any.
func (x item) shared() []byte {
	if x.of.homes[x.home].Slot >= 0 {
		return nil
	}
	return x.of.model.Slot(x.slot)
}

// cutStraight divides a group into pieces that come to lie in its slot.
func (x item) cutStraight(memory []byte, u urgency) []*piece {
	var all []*piece
	s, g := x.of.guest.spec, &x.of.homes[x.home].Group
	for i, e := range extentsOf(s, g) {
		t := &s.file.Tensors[s.bound.Tensors[g.Weights[i]]]
		begin := e.at - int64(uring.HeadOf(e.from)) // of the sector in the slot
		for from, end := e.from, e.from+e.bytes; from < end; {
			next := min((from+straightBytes)&^(uring.Block-1), end)
			head := uring.HeadOf(from)
			at := begin + (from - int64(head)) - (e.from - int64(uring.HeadOf(e.from)))
			room := (int64(head) + next - from + uring.Block - 1) &^ (uring.Block - 1)
			all = append(all, &piece{
				item: x, urgency: u, ref: g.Weights[i], source: s.file.Part(t.Part), from: from, bytes: int(next - from),
				slab: noSlab, into: memory[at : at+room : at+room], head: head,
			})
			from = next
		}
	}
	return all
}

// extent is the part of a weight that a group holds: in the file, and in a slot.
type extent struct{ from, bytes, at int64 }

// extentsOf lists where a group's weights lie, one behind the other in the slot.
func extentsOf(s *spec, g *ir.Group) []extent {
	all, at := make([]extent, len(g.Weights)), int64(0)
	for i, ref := range g.Weights {
		w, t := &s.bound.Weights[ref], &s.file.Tensors[s.bound.Tensors[ref]]
		from, to := g.Rows(w)
		row := t.Size / int64(w.Rows)
		e := extent{from: t.Offset + int64(from)*row, bytes: int64(to-from) * row}
		e.at = at + int64(uring.HeadOf(e.from))
		at += backend.ExtentBytes(e.bytes)
		all[i] = e
	}
	return all
}

// in are a group's weights where they lie in its slot.
func (x item) in(memory []byte) [][]byte {
	all := extentsOf(x.of.guest.spec, &x.of.homes[x.home].Group)
	data := make([][]byte, len(all))
	for i, e := range all {
		data[i] = memory[e.at : e.at+e.bytes : e.at+e.bytes]
	}
	return data
}
