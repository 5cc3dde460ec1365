package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/storage/uring"
)

// All that the uploader accepts: granted (pool), *read (reader, done), *pack (packer, done), flushed and restarted (all
// three), and
type (
	// fetch, from the prefetcher: bring a group of weights to its home, then answer resident. It may be repeated.
	fetch struct{ item }
)

func (*fetch) Late() {}

// piece is some rows of one weight: what fits a slab.
type piece struct {
	item
	ref    ir.Ref
	row    int
	source source.Source
	from   int64
	bytes  int
}

// uploader moves weights: it leases a slab, has the reader fill it and the packer copy it to the device, and goes on
// with the slab or gives it back. What was under way when one of them restarts is asked for again.
type uploader struct {
	system      *run.System
	out         uploaderEdges
	name        string // by which pool and reader know it
	slabBytes   int
	kept        *deviceMemory
	incarnation int
	gen         uint64
	unflushed   run.Waiting
	todo        []piece
	moving      map[int]piece  // by slab
	missing     map[item]int   // pieces that have not arrived, of each group asked for
	complete    map[item]int64 // bytes of the groups that the device has; shared by the incarnations
}

func newUploader(d *device, incarnation int, complete map[item]int64) *uploader {
	return &uploader{
		system: d.system, out: d.house.uploaderEdges, name: d.house.uploader.Address.Id, slabBytes: d.slabBytes,
		kept: d.kept, incarnation: incarnation, complete: complete,
		moving: make(map[int]piece), missing: make(map[item]int),
	}
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
			u.flushed(m)
		}
	case *fetch:
		u.take(m.item)
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
	u.gen = u.kept.generations.Add(1)
	for slab, p := range u.moving {
		u.todo = append(u.todo, p)
		delete(u.moving, slab)
	}
	u.out.lease.Reset()
	u.unflushed = u.out.partners.Flush(u.gen)
}

// flushed hears that a partner has begun the generation. When all have, nobody touches the slabs of the one before.
func (u *uploader) flushed(m *run.Flushed) {
	u.unflushed.Done(m)
	if u.unflushed == 0 {
		u.out.settled.Send(&settled{by: u.name, gen: u.gen})
		u.lease()
	}
}

// recount corrects the progress of loading: pieces of incomplete groups travel again.
func (u *uploader) recount() {
	for _, g := range u.kept.guests {
		g.progress.Store(0)
	}
	for x, bytes := range u.complete {
		x.of.guest.progress.Add(bytes)
	}
}

// take queues a group's pieces, unless that was done before. A complete group is never written again, whatever
// restarts: a step may be reading it.
func (u *uploader) take(x item) {
	if _, ok := u.complete[x]; ok {
		u.out.resident.Send(&resident{x})
		return
	}
	if _, known := u.missing[x]; known {
		return
	}
	pieces := u.cut(x)
	u.missing[x] = len(pieces)
	u.todo = append(u.todo, pieces...)
	u.lease()
}

// lease asks for as many slabs as there is work for.
func (u *uploader) lease() {
	for u.unflushed == 0 && u.out.lease.Held() < len(u.moving)+len(u.todo) && u.out.lease.Take() {
		u.out.lease.Send(&lease{by: u.name, gen: u.gen, reply: u.out.granted})
	}
}

func (u *uploader) read(slab int) {
	if len(u.todo) == 0 {
		u.out.lease.Give()
		u.out.release.Send(&release{by: u.name, gen: u.gen, slab: slab})
		return
	}
	p := u.todo[0]
	u.todo = u.todo[1:]
	u.moving[slab] = p
	u.out.read.Send(&read{
		by: u.name, gen: u.gen, slab: slab, source: p.source, from: p.from, bytes: p.bytes, reply: u.out.data,
	})
}

func (u *uploader) arrived(m *read) {
	p := u.moving[m.slab]
	if m.err != nil {
		u.fail(p, m.err)
		return
	}
	u.out.pack.Send(&pack{gen: u.gen, slab: m.slab, model: p.of.model, ref: p.ref, row: p.row, data: m.data})
}

func (u *uploader) packed(m *pack) {
	p := u.moving[m.slab]
	delete(u.moving, m.slab)
	if m.err != nil {
		u.fail(p, m.err)
		return
	}
	p.of.guest.progress.Add(int64(p.bytes))
	u.missing[p.item]--
	if u.missing[p.item] == 0 {
		delete(u.missing, p.item)
		u.complete[p.item] = p.of.homes[p.home].Group.Bytes
		u.out.resident.Send(&resident{p.item})
	}
	u.read(m.slab)
}

func (u *uploader) fail(p piece, err error) {
	s := p.of.guest.spec
	u.out.broken.Send(&failed{fmt.Errorf("%s: tensor %q: %w", s.file.Name, s.bound.Weights[p.ref].Name, err)})
}

// cut divides a group's weights into pieces of whole rows that fit a slab.
func (u *uploader) cut(x item) []piece {
	var pieces []piece
	s, g, grain := x.of.guest.spec, &x.of.homes[x.home].Group, x.of.model.RowGrain()
	for _, ref := range g.Weights {
		w, t := s.bound.Weights[ref], s.file.Tensors[s.bound.Tensors[ref]]
		from, to := g.Rows(&w)
		rowBytes := int(t.Size) / w.Rows
		rows := max((u.slabBytes-uring.Slack)/rowBytes/grain, 1) * grain
		for row := from; row < to; row += rows {
			n := min(rows, to-row)
			pieces = append(pieces, piece{
				item: x, ref: ref, row: row, source: s.file.Part(t.Part),
				from: t.Offset + int64(row)*int64(rowBytes), bytes: n * rowBytes,
			})
		}
	}
	return pieces
}
