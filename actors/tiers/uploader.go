package tiers

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
)

// Messages that the uploader accepts, beside granted (pool), *read (reader, done), *pack (packer, done), and flushed
// and restarted from all three.
type (
	// fetch, from the prefetcher, asks for a group of weights to be brought to its slot; arrived answers. It may be
	// repeated.
	fetch struct {
		item
		urgency urgency
	}
	// arrived answers fetch: the way of a group has ended. Every byte of it is in its slot if err is nil.
	arrived struct {
		item
		err error
		way Way
	}
	// again, from the uploader to itself after a pause, asks for what the disk failed to read to be read once more.
	again struct {
		gen   uint64
		piece *piece
	}
)

func (*fetch) Late()   {}
func (*arrived) Late() {}
func (*again) Late()   {}

// A read that fails is tried again after a pause, which doubles, before its group is given up. For weights that a
// device had before it was restarted, that goes on for about a minute: the model cannot go on without them, and since
// they could be read before, the failure may pass.
const (
	readTries   = 4
	reloadTries = 64
	firstPause  = 20 * time.Millisecond
	mostPause   = time.Second
)

// uploader brings weights to their slots. If a slot has memory that reads may write to, it has the reader read into
// that. For other slots it leases a slab, has the reader fill it and the packer copy it to the device, and then uses
// the slab for the next piece or gives it back. What was under way when one of these actors restarts is asked for
// again.
// Wide: it is all that one actor knows.
type uploader struct {
	system      *run.System
	log         zerolog.Logger
	out         uploaderEdges
	name        string // by which pool and reader know it
	slabs       *Slabs
	generations *atomic.Uint64 // counted through all incarnations
	known       []*Cargo       // whose progress this incarnation has set right
	reloads     bool           // the device was restarted: it had its models' weights before
	incarnation int
	gen         uint64
	unflushed   run.Waiting
	packed      pieces          // pieces that go through slabs, and wait to be read
	straight    pieces          // likewise, pieces that are read into slots
	moving      map[*piece]bool // pieces that are under way
	coming      map[item]*arrival
	debt        *Debt // of the drive
}

// arrival is the state of a group whose pieces are on their way.
type arrival struct {
	missing int // pieces that have not arrived
	err     error
	way     Way // of the piece that was read last
}

type uploaderEdges struct {
	partners  run.Partners // reader, pool, packer
	restarted run.Edge[restarted]
	arrived   run.Edge[arrived]
	lease     run.Counted[lease]
	granted   run.Edge[granted] // the pool's answer
	release   run.Edge[release]
	settled   run.Edge[settled]
	read      run.Edge[read]
	straight  run.Counted[read]
	data      run.Edge[read] // the reader's answer
	again     run.Edge[again]
	pack      run.Edge[pack]
}

func (u *uploader) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
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
		u.take(m)
	case *granted:
		if m.gen == u.gen {
			u.fill(m.slab)
		}
	case *read:
		if m.gen == u.gen {
			u.arrived(m)
		}
	case *again:
		if m.gen == u.gen {
			u.read(m.piece)
		}
	case *pack:
		if m.gen == u.gen {
			u.end(m.piece, m.err)
		}
	default:
		u.system.Lifecycle(c)
	}
}

// restart starts a new generation with the others; pieces that were under way go back to the queue.
func (u *uploader) restart() {
	u.gen = u.generations.Add(1)
	for p := range u.moving {
		u.queue(p)
	}
	clear(u.moving)
	u.out.lease.Reset()
	u.out.straight.Reset()
	u.debt.forget()
	u.unflushed = u.out.partners.Flush(u.gen)
}

// flushed hears that a partner has begun the generation. When all have, nobody touches the slabs of the one before,
// nor reads into slots for it.
func (u *uploader) flushed(m *run.Flushed) {
	u.unflushed.Done(m)
	if u.unflushed == 0 {
		u.debt.settle()
		u.out.settled.Send(&settled{by: u.name, gen: u.gen})
		u.begin()
	}
}

// take queues a group's pieces, unless that was done before. An item that has come to its end never travels again,
// whatever restarts: a step may be reading it, or the slot may be another group's by now.
func (u *uploader) take(m *fetch) {
	x := m.item
	if end := x.of.ends[x.slot]; end.number >= x.number {
		u.out.arrived.Send(&arrived{item: x, err: end.err})
		return
	}
	if u.coming[x] != nil {
		return
	}
	if !x.of.memory.enter() {
		u.out.arrived.Send(&arrived{item: x, err: errModelClosed})
		return
	}
	all := x.cut(u.slabs, m.urgency)
	x.of.memory.leave()
	u.know(x.of)
	u.coming[x] = &arrival{missing: len(all)}
	for _, p := range all {
		u.queue(p)
	}
	u.begin()
}

// know sets right what was counted of a model's weights by an older incarnation: they come group by group again.
func (u *uploader) know(c *Cargo) {
	if slices.Contains(u.known, c) {
		return
	}
	u.known = slices.DeleteFunc(u.known, func(old *Cargo) bool { return !old.memory.open() })
	u.known = append(u.known, c)
	c.recount()
}

func (u *uploader) queue(p *piece) {
	if p.way.queued.IsZero() {
		p.way.queued = now()
	}
	if p.straight() {
		u.straight.push(p)
	} else {
		u.packed.push(p)
	}
}

// begin asks for as many slabs as there is work for, and for as many reads into slots as there is credit for.
func (u *uploader) begin() {
	if u.unflushed != 0 {
		return
	}
	for u.packed.len() > u.out.lease.Held()-u.slabsInUse() && u.out.lease.Take() {
		u.out.lease.Send(&lease{by: u.name, gen: u.gen, reply: u.out.granted})
	}
	for u.straight.len() > 0 && u.out.straight.Take() {
		p := u.straight.pop()
		u.moving[p] = true
		u.read(p)
	}
}

// slabsInUse is how many slabs pieces travel in; the other leases were not granted yet.
func (u *uploader) slabsInUse() (n int) {
	for p := range u.moving {
		if !p.straight() {
			n++
		}
	}
	return n
}

// fill sends the next piece on its way in a slab, or gives the slab back.
func (u *uploader) fill(slab int) {
	if u.packed.len() == 0 {
		u.out.lease.Give()
		u.out.release.Send(&release{by: u.name, gen: u.gen, slab: slab})
		return
	}
	p := u.packed.pop()
	p.useSlab(u.slabs, slab)
	u.moving[p] = true
	u.read(p)
}

func (u *uploader) read(p *piece) {
	if p.way.sent.IsZero() {
		p.way.sent, p.way.slab = now(), !p.straight()
	}
	u.debt.asked()
	m := &read{by: u.name, gen: u.gen, piece: p, source: p.source, from: p.from, bytes: p.bytes, into: p.into,
		head: p.head, memory: p.of.memory, reply: u.out.data}
	if p.straight() {
		u.out.straight.Send(m)
		return
	}
	u.out.read.Send(m)
}

// arrived takes in that a read has ended. One that failed has a few more tries.
func (u *uploader) arrived(m *read) {
	u.debt.given()
	p := m.piece
	p.way.read = m.ended
	if m.err == nil && p.home().Brought() {
		p.of.progress.came(m.asked, m.ended)
	}
	switch {
	case m.err != nil && m.memory.open() && p.tries+1 < u.tries(p):
		x := &again{u.gen, p}
		time.AfterFunc(min(firstPause<<min(p.tries, readTries+4), mostPause), func() { u.out.again.Send(x) })
		if p.tries++; p.tries == readTries {
			u.log.Warn().Err(p.of.failure(p.ref, m.err)).Msg("weights cannot be read: trying on")
		}
	case m.err != nil || p.straight():
		u.end(p, m.err)
	default:
		u.out.pack.Send(&pack{gen: u.gen, piece: p, model: p.of.model, ref: p.ref, row: p.row, data: m.data})
	}
}

// tries is how often a piece is read before it is given up.
func (u *uploader) tries(p *piece) int {
	if u.reloads && p.home().Brought() {
		return reloadTries
	}
	return readTries
}

// end takes in that a piece has come to its end, and goes on with the next one. When all pieces of a group have, the
// prefetcher hears that the group has arrived, or why not.
func (u *uploader) end(p *piece, err error) {
	delete(u.moving, p)
	a := u.coming[p.item]
	a.missing--
	if p.way.read.After(a.way.read) {
		a.way = p.way
	}
	switch {
	case err == nil:
		p.arrived()
	case a.err == nil:
		a.err = p.of.failure(p.ref, err)
		a.missing -= u.packed.drop(p.item) + u.straight.drop(p.item)
	}
	if a.missing == 0 {
		delete(u.coming, p.item)
		p.of.ends[p.item.slot] = ending{p.number, a.err}
		u.out.arrived.Send(&arrived{p.item, a.err, a.way})
	}
	if p.straight() {
		u.out.straight.Give()
		u.begin()
	} else {
		u.fill(p.slab)
	}
}
