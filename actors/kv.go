package actors

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/kvfiles"
)

// The KV owner accepts Flush, begun and kvRequest from the scheduler, *settle and *transfer from the facade by way of
// the model, and *move from the mover, as an answer.
//
// kvRequest asks for blocks, or gives them back. A sequence has one such request under way at most; the same struct
// returns as the answer. tokens is read-only.
type kvRequest struct {
	gen    uint64
	seq    *batch.Seq
	of     *asked // the sequence's request
	want   batch.KVRequest
	tokens []int32

	tables []backend.Table // answer: the sequence's blocks, by cache class
	cached int             // answer to KVOpen: positions that need not be computed
	full   bool            // answer: there was no room
}

func (*kvRequest) Late() {}

// begun, from the scheduler, says that nothing of an older generation is computed any more.
type begun struct{ gen uint64 }

func (*begun) Late() {}

// settle, from the facade, asks to be told when nothing of the model is to be written to files any more. No request may
// be open.
type settle struct{ done chan struct{} }

func (*settle) Late() {}

type kvEdges struct {
	restarted run.Edge[restarted]
	answer    run.Edge[kvRequest]
	move      run.Counted[move]
}

// kvOwner keeps track of which blocks of the cache belong to which sequence. The blocks' memory is the device's.
// Cached blocks whose place is needed are moved to host memory, if there is any, and come back for prompts that begin
// with their tokens. A request that gets a place from or to which a copy is still under way is answered when the mover
// is done; steps of other sequences go on meanwhile.
type kvOwner struct {
	system      *run.System
	out         kvEdges
	classes     []kv.Class
	stats       *stats
	incarnation int
	era
	closed    *atomic.Uint64 // how often the model was closed
	cache     *kv.Cache
	waiting   []*kvRequest // requests whose answers wait for moves, in order
	spare     []*move
	filed     filed
	slots     *slots // what answers had as their text
	news      func([]kv.News)
	outlook   *outlook
	transfers transfers
}

// filed is what the KV owner knows of files.
type filed struct {
	restored bool       // what there are files of is known, or there are none
	owed     *run.Flush // waits for that
	settling *settle
}

// transfers are what the KV owner knows of transfers.
type transfers struct {
	open    *atomic.Pointer[transfer] // the one under way, which outlives the actor
	now     *transfer                 // the same, once it holds blocks; nil: none does
	due     *transfer                 // the same, if it has to begin
	refused []*kvRequest              // requests that may have room when it is over
	begun   bool                      // the generation: no step of an older one writes to blocks
}

func (k *kvOwner) Receive(c actor.Context) {
	k.outlook.caching.Lock()
	defer k.outlook.caching.Unlock()
	switch m := c.Message().(type) {
	case *actor.Started:
		k.cache = kv.New(k.classes...)
		k.outlook.cache = k.cache
		if k.news != nil {
			k.cache.Watch()
		}
		k.filed.restored = !slices.ContainsFunc(k.classes, func(c kv.Class) bool { return c.Disk > 0 })
		if k.incarnation > 0 {
			k.transfers.open.Load().end(errMoved)
			k.out.restarted.Send(&restarted{})
		}
	case *actor.Stopping:
		k.transfers.open.Load().end(ErrClosed)
		if k.news != nil {
			k.news([]kv.News{{Kind: kv.Cleared}})
		}
		k.system.Lifecycle(c)
	case *run.Flush:
		k.era, k.transfers.begun = era{m.Gen, k.closed.Load()}, false
		k.interrupt()
		k.cache.Lose()                // blocks in host memory and in files stay cached in the next generation
		k.waiting, k.spare = nil, nil // older moves may still be in a mailbox
		k.out.move.Reset()
		k.flushed(m)
	case *begun:
		if m.gen == k.gen {
			k.transfers.begun = true
			k.proceed()
		}
	case *kvRequest:
		if m.gen == k.gen {
			k.serve(m)
			k.waiting = append(k.waiting, m)
			k.proceed()
		}
	case *transfer:
		k.transfers.due = m
		k.proceed()
	case *move:
		if m.gen == k.gen {
			k.moved(m)
			k.proceed()
		}
	case *settle:
		k.filed.settling = m
		k.proceed()
	default:
		k.system.Lifecycle(c)
	}
	k.stats.setKV(k.cache.Stats())
	if all := k.cache.News(); len(all) > 0 {
		k.news(all)
	}
}

// moved takes a move's answer. A move that failed leaves a block without its content: the owner panics, and its
// restart begins anew. Where the model was closed meanwhile, the generation that the device's end begins forgets what
// was on its way, and a restart would lose what lies in host memory, too.
func (k *kvOwner) moved(m *move) {
	if errors.Is(m.err, errNotCompiled) {
		return
	}
	if m.err != nil {
		panic(m.err)
	}
	k.out.move.Give()
	if m.of != nil {
		k.carried(m.of)
		return
	}
	if len(m.all) == 0 {
		k.cache.Restore(m.known)
		k.filed.restored = true
		k.filed.owed.Done()
		return
	}
	for i, x := range m.all {
		if i < len(m.files) && m.files[i] != nil {
			k.failed(x, m.files[i])
			continue
		}
		k.cache.Moved()
	}
	k.spare = append(k.spare, m)
}

// flushed answers a flush when it is known which blocks there are files of.
func (k *kvOwner) flushed(m *run.Flush) {
	if k.filed.restored {
		m.Done()
		k.proceed() // there may be files to drop
		return
	}
	k.filed.owed = m
	k.out.move.Take()
	k.out.move.Send(&move{era: k.era})
}

// failed notes that a file could not be read or written. Sequences that waited for its block look again for what is
// cached.
func (k *kvOwner) failed(m kv.Move, err error) {
	again := k.cache.Failed(m)
	if k.transfers.now != nil && slices.Contains(again, transferSeq) {
		k.transfers.due, k.transfers.now = k.transfers.now, nil
	}
	for _, w := range k.waiting {
		if slices.Contains(again, kv.Seq(w.seq.ID)) {
			k.serve(w)
		}
	}
	if errors.Is(err, kvfiles.ErrFull) {
		k.cache.Shrink(m.Class)
	}
}

// proceed sends as many moves as the mover has credit for, and answers the requests that wait for none. One for which
// there is no room beside the blocks of a transfer waits for its end: the scheduler would take it for one that has to
// give way, or that never fits.
func (k *kvOwner) proceed() {
	k.begin()
	k.carry()
	for k.out.move.Held() < movesAhead {
		m := &move{}
		if n := len(k.spare); n > 0 {
			m, k.spare = k.spare[n-1], k.spare[:n-1]
		}
		*m = move{era: k.era, all: k.cache.NextMoves(movesTogether, m.all[:0])}
		if len(m.all) == 0 {
			k.spare = append(k.spare, m)
			break
		}
		k.out.move.Take()
		k.out.move.Send(m)
	}
	k.waiting = slices.DeleteFunc(k.waiting, func(m *kvRequest) bool {
		done := !k.cache.Coming(kv.Seq(m.seq.ID))
		switch {
		case done && m.full && k.transfers.now != nil:
			k.transfers.refused = append(k.transfers.refused, m)
		case done:
			k.out.answer.Send(m)
		}
		return done
	})
	if k.filed.settling != nil && k.cache.Saved() {
		close(k.filed.settling.done)
		k.filed.settling = nil
	}
}

// serve carries out a request. Errors of the cache other than “full” are defects of ours: it panics.
func (k *kvOwner) serve(m *kvRequest) {
	id := kv.Seq(m.seq.ID)
	m.full = false
	var err error
	switch m.want.Op {
	case batch.KVOpen:
		err = k.open(id, m)
	case batch.KVGrow:
		err = k.grow(id, m, m.want.Soon)
	case batch.KVPass:
		if err = k.cache.Publish(id, m.tokens); err == nil {
			_, err = k.cache.Pass(id, m.want.End)
		}
	case batch.KVClose:
		k.slots.remember(m.of, m.tokens)
		err = k.cache.Close(id)
	}
	if err != nil {
		panic(err)
	}
	m.tables = append(m.tables[:0], k.cache.Tables(id)...)
}

// open pins the blocks that are cached for the tokens and grants the rest, or nothing at all.
func (k *kvOwner) open(id kv.Seq, m *kvRequest) error {
	var err error
	if m.cached, err = k.cache.Open(id, m.of.Salt, m.tokens); errors.Is(err, kv.ErrFull) {
		m.full = true
		return nil
	} else if err != nil {
		return err
	}
	if err := k.grow(id, m, m.cached+m.want.Soon); err != nil || !m.full {
		return err
	}
	return k.cache.Close(id)
}

func (k *kvOwner) grow(id kv.Seq, m *kvRequest, soon int) error {
	err := k.cache.Grow(id, m.want.End, soon)
	if errors.Is(err, kv.ErrFull) {
		m.full = true
		return nil
	}
	return err
}

// interrupt ends the transfer that was under way when a generation ended, or has one that had not come far begin anew.
func (k *kvOwner) interrupt() {
	t := k.transfers.now
	if k.transfers.now, k.transfers.refused = nil, nil; t == nil {
		return
	}
	if t.sent || t.copied > 0 {
		t.end(errMoved)
		return
	}
	k.transfers.due = t
}

// begin has a transfer that is due hold its blocks, once a generation has begun. Before, a step of an older one may
// still be computed, which writes to blocks that are free in the books.
func (k *kvOwner) begin() {
	t := k.transfers.due
	if t == nil || !k.transfers.begun {
		return
	}
	k.transfers.due = nil
	if t.over() { // an incarnation ended before it came
		k.again()
		return
	}
	if t.do == forget {
		t.cached = k.cache.Forget(t.salt, t.tokens)
		t.end(nil)
		return
	}
	cached, err := k.cache.Hold(transferSeq, t.salt, t.tokens)
	if t.do == copyIn && err == nil && cached < len(t.tokens) {
		_ = k.cache.Close(transferSeq) // it was opened just now
		err = k.cache.Fill(transferSeq, t.salt, len(t.tokens)/backend.BlockSize)
	}
	switch {
	case errors.Is(err, kv.ErrFull):
		t.end(errNoRoom)
		k.again()
		return
	case err != nil:
		panic(err)
	}
	t.cached, t.sent, t.copied = cached, false, 0
	t.tables = append([]backend.Table(nil), k.cache.Tables(transferSeq)...)
	k.transfers.now = t
}

// carry has the next blocks of the transfer copied, if it is its turn.
func (k *kvOwner) carry() {
	t := k.transfers.now
	switch {
	case t == nil || t.sent || k.cache.Coming(transferSeq) || k.out.move.Held() == movesAhead:
	case t.do == copyIn && t.cached == len(t.tokens), t.do == copyOut && t.cached == 0: // there is nothing to copy
		k.finish(nil)
	default:
		t.sent = true
		k.out.move.Take()
		k.out.move.Send(&move{era: k.era, of: t})
	}
}

// carried takes the answer of the mover for a transfer.
func (k *kvOwner) carried(t *transfer) {
	t.sent = false
	switch {
	case t != k.transfers.now: // of an older generation
	case t.failed != nil:
		k.finish(t.failed)
	case t.copied == t.blocks():
		k.finish(nil)
	}
}

// finish ends the transfer that holds blocks: those that came in are shared from now on, if all did.
func (k *kvOwner) finish(err error) {
	t := k.transfers.now
	k.transfers.now = nil
	if t.do == copyIn && err == nil && t.cached < len(t.tokens) {
		if err := k.cache.Publish(transferSeq, t.tokens); err != nil {
			panic(err)
		}
		t.cached = len(t.tokens)
	}
	if err := k.cache.Close(transferSeq); err != nil {
		panic(err)
	}
	t.end(err)
	k.again()
}

// again serves what was refused beside a transfer's blocks, which are held no more.
func (k *kvOwner) again() {
	refused := k.transfers.refused
	k.transfers.refused = nil
	for _, m := range refused {
		k.serve(m)
		k.waiting = append(k.waiting, m)
	}
}
