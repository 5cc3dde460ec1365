package actors

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/kvfiles"
)

// The KV owner accepts Flush and kvRequest from the scheduler, *settle from the facade, and *move from the mover as an
// answer.
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
	gen         uint64
	cache       *kv.Cache
	waiting     []*kvRequest // requests whose answers wait for moves, in order
	spare       []*move
	restored    bool       // what there are files of is known, or there are none
	owed        *run.Flush // waits for that
	settling    *settle
}

func (k *kvOwner) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		k.cache = kv.New(k.classes...)
		k.restored = !slices.ContainsFunc(k.classes, func(c kv.Class) bool { return c.Disk > 0 })
		if k.incarnation > 0 {
			k.out.restarted.Send(&restarted{})
		}
	case *run.Flush:
		k.gen = m.Gen
		k.cache.Lose()                // blocks in host memory and in files stay cached in the next generation
		k.waiting, k.spare = nil, nil // older moves may still be in a mailbox
		k.out.move.Reset()
		k.flushed(m)
	case *kvRequest:
		if m.gen == k.gen {
			k.serve(m)
			k.waiting = append(k.waiting, m)
			k.proceed()
		}
	case *move:
		if m.gen == k.gen {
			k.moved(m)
			k.proceed()
		}
	case *settle:
		k.settling = m
		k.proceed()
	default:
		k.system.Lifecycle(c)
	}
	k.stats.setKV(k.cache.Stats())
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
	if len(m.all) == 0 {
		k.cache.Restore(m.known)
		k.restored = true
		k.owed.Done()
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
	if k.restored {
		m.Done()
		k.proceed() // there may be files to drop
		return
	}
	k.owed = m
	k.out.move.Take()
	k.out.move.Send(&move{gen: k.gen})
}

// failed notes that a file could not be read or written. Sequences that waited for its block look again for what is
// cached.
func (k *kvOwner) failed(m kv.Move, err error) {
	again := k.cache.Failed(m)
	for _, w := range k.waiting {
		if slices.Contains(again, kv.Seq(w.seq.ID)) {
			k.serve(w)
		}
	}
	if errors.Is(err, kvfiles.ErrFull) {
		k.cache.Shrink(m.Class)
	}
}

// proceed sends as many moves as the mover has credit for, and answers the requests that wait for none.
func (k *kvOwner) proceed() {
	for k.out.move.Held() < movesAhead {
		m := &move{}
		if n := len(k.spare); n > 0 {
			m, k.spare = k.spare[n-1], k.spare[:n-1]
		}
		*m = move{gen: k.gen, all: k.cache.NextMoves(movesTogether, m.all[:0])}
		if len(m.all) == 0 {
			k.spare = append(k.spare, m)
			break
		}
		k.out.move.Take()
		k.out.move.Send(m)
	}
	k.waiting = slices.DeleteFunc(k.waiting, func(m *kvRequest) bool {
		done := !k.cache.Coming(kv.Seq(m.seq.ID))
		if done {
			k.out.answer.Send(m)
		}
		return done
	})
	if k.settling != nil && k.cache.Saved() {
		close(k.settling.done)
		k.settling = nil
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
