package tiers

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/storage/uring"
)

// piece is what one read brings: rows of one weight that fit a slab, or any bytes of it that come to lie in a slot.
type piece struct {
	item
	urgency urgency
	ref     ir.Ref
	row     int // the first one, of a piece that goes through a slab
	source  source.Source
	from    int64
	bytes   int
	slab    int    // noSlab: straight into a slot
	into    []byte // see uring.Request
	head    int
	tries   int // that failed
	way     Way
}

// arrived adds the piece to the progress of loading, if its group is brought once.
func (p *piece) arrived() {
	if p.home().Brought() {
		p.of.progress.arrived(int64(p.bytes))
	}
}

func (p *piece) straight() bool { return p.slab < 0 }

// noSlab is the slab of pieces that go straight into a slot.
const noSlab = -1

// useSlab has the piece travel in a slab.
func (p *piece) useSlab(slabs *Slabs, slab int) {
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
func (x item) cut(slabs *Slabs, u urgency) []*piece {
	if memory := x.shared(); memory != nil {
		return x.cutStraight(memory, u)
	}
	var all []*piece
	g, grain := &x.home().Group, x.of.model.RowGrain()
	for _, ref := range g.Weights {
		w, t := x.of.Bound.Weights[ref], x.of.tensor(ref)
		from, to := g.Rows(&w)
		rowBytes := int(t.Size) / w.Rows
		rows := max((slabs.Size()-uring.Slack)/rowBytes/grain, 1) * grain
		for row := from; row < to; row += rows {
			n := min(rows, to-row)
			all = append(all, &piece{
				item: x, urgency: u, ref: ref, row: row, source: x.of.File.Part(t.Part),
				from: t.Offset + int64(row)*int64(rowBytes), bytes: n * rowBytes,
			})
		}
	}
	return all
}

// cutStraight divides a group into pieces that come to lie in its slot.
func (x item) cutStraight(memory []byte, u urgency) []*piece {
	var all []*piece
	weights := x.home().Group.Weights
	for i, e := range x.extents() {
		t := x.of.tensor(weights[i])
		begin := e.at - int64(uring.HeadOf(e.from)) // offset in the slot of the block in which the extent begins
		for from, end := e.from, e.from+e.bytes; from < end; {
			next := min((from+straightBytes)&^(uring.Block-1), end)
			head := uring.HeadOf(from)
			at := begin + (from - int64(head)) - (e.from - int64(uring.HeadOf(e.from)))
			room := (int64(head) + next - from + uring.Block - 1) &^ (uring.Block - 1)
			all = append(all, &piece{
				item: x, urgency: u, ref: weights[i], source: x.of.File.Part(t.Part), from: from, bytes: int(next - from),
				slab: noSlab, into: memory[at : at+room : at+room], head: head,
			})
			from = next
		}
	}
	return all
}
