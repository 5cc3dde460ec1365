package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/storage/uring"
)

// All that the uploader accepts: granted (pool), *read (reader, done), *pack (packer, done), flushed and restarted (all
// three), and
type (
	// fetch, from the prefetcher: bring a group of weights to the device, then answer resident. It may be repeated.
	fetch struct{ group int }
)

func (*fetch) Late() {}

// piece is some rows of one weight: what fits a slab.
type piece struct {
	group int
	ref   ir.Ref
	row   int
	part  int // file of a split model
	from  int64
	bytes int
}

// uploader moves weights: it leases a slab, has the reader fill it and the packer copy it to the device, and goes on
// with the slab or gives it back. What was under way when one of them restarts is asked for again.
type uploader struct {
	*core
	out         uploaderEdges
	incarnation int
	gen         uint64
	unflushed   run.Waiting
	todo        []piece
	moving      map[int]piece // by slab
	missing     map[int]int   // pieces that have not arrived, of each group asked for
	complete    map[int]int64 // bytes of the groups that the device has; shared by the incarnations
}

func newUploader(k *core, incarnation int, complete map[int]int64) *uploader {
	return &uploader{core: k, out: k.wiring.uploader, incarnation: incarnation, complete: complete,
		moving: make(map[int]piece), missing: make(map[int]int)}
}

func (u *uploader) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		u.recount()
		u.restart()
		if u.incarnation > 0 {
			u.out.restarted.Send(&restarted{})
		}
	case *restarted:
		u.restart()
	case *run.Flushed:
		if m.Gen == u.gen {
			u.unflushed.Done(m)
			u.lease()
		}
	case *fetch:
		u.take(m.group)
	case *granted:
		if m.gen == u.gen {
			u.read(m.slab)
		}
	case *read:
		if m.gen == u.gen {
			u.arrived(m)
		}
	case *pack:
		if m.gen == u.gen {
			u.packed(m)
		}
	default:
		u.system.Lifecycle(c)
	}
}

// restart starts a new generation with the others; pieces that were under way go back to the queue.
func (u *uploader) restart() {
	u.gen = u.generation.Add(1)
	for slab, p := range u.moving {
		u.todo = append(u.todo, p)
		delete(u.moving, slab)
	}
	u.out.lease.Reset()
	u.unflushed = u.out.partners.Flush(u.gen)
}

// recount corrects the progress of loading: pieces of incomplete groups travel again.
func (u *uploader) recount() {
	total := int64(0)
	for _, bytes := range u.complete {
		total += bytes
	}
	u.loadedBytes.Store(total)
}

// take queues a group's pieces, unless that was done before. A complete group is never written again, whatever
// restarts: a step may be reading it.
func (u *uploader) take(group int) {
	if _, ok := u.complete[group]; ok {
		u.out.resident.Send(&resident{group})
		return
	}
	if _, known := u.missing[group]; known {
		return
	}
	pieces := u.cut(group)
	u.missing[group] = len(pieces)
	u.todo = append(u.todo, pieces...)
	u.lease()
}

// lease asks for as many slabs as there is work for.
func (u *uploader) lease() {
	for u.unflushed == 0 && u.out.lease.Held() < len(u.moving)+len(u.todo) && u.out.lease.Take() {
		u.out.lease.Send(&lease{gen: u.gen, reply: u.out.granted})
	}
}

func (u *uploader) read(slab int) {
	if len(u.todo) == 0 {
		u.out.lease.Give()
		u.out.release.Send(&release{gen: u.gen, slab: slab})
		return
	}
	p := u.todo[0]
	u.todo = u.todo[1:]
	u.moving[slab] = p
	u.out.read.Send(&read{gen: u.gen, slab: slab, part: p.part, from: p.from, bytes: p.bytes, reply: u.out.data})
}

func (u *uploader) arrived(m *read) {
	p := u.moving[m.slab]
	if m.err != nil {
		u.fail(p, m.err)
		return
	}
	u.out.pack.Send(&pack{gen: u.gen, slab: m.slab, ref: p.ref, row: p.row, data: m.data})
}

func (u *uploader) packed(m *pack) {
	p := u.moving[m.slab]
	delete(u.moving, m.slab)
	if m.err != nil {
		u.fail(p, m.err)
		return
	}
	u.loadedBytes.Add(int64(p.bytes))
	u.missing[p.group]--
	if u.missing[p.group] == 0 {
		delete(u.missing, p.group)
		u.complete[p.group] = u.groups[p.group].Bytes
		u.out.resident.Send(&resident{p.group})
	}
	u.read(m.slab)
}

func (u *uploader) fail(p piece, err error) {
	u.out.broken.Send(&failed{fmt.Errorf("%s: tensor %q: %w", u.file.Name, u.bound.Weights[p.ref].Name, err)})
}

// cut divides a group's weights into pieces of whole rows that fit a slab.
func (u *uploader) cut(group int) []piece {
	var pieces []piece
	g := &u.groups[group]
	for _, ref := range g.Weights {
		w, t := u.bound.Weights[ref], u.file.Tensors[u.bound.Tensors[ref]]
		from, to := g.Rows(&w)
		rowBytes := int(t.Size) / w.Rows
		rows := max((u.slabBytes-uring.Slack)/rowBytes/u.model.RowGrain(), 1) * u.model.RowGrain()
		for row := from; row < to; row += rows {
			n := min(rows, to-row)
			pieces = append(pieces, piece{
				group: group, ref: ref, row: row, part: t.Part,
				from: t.Offset + int64(row)*int64(rowBytes), bytes: n * rowBytes,
			})
		}
	}
	return pieces
}
