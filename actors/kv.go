package actors

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/kv"
)

// All that the KV owner accepts: from the mover *move as an answer, from the scheduler flush, and
//
// kvRequest asks for blocks, or gives them back. It is the sequence's only request under way; the same struct
// returns as the answer. tokens is read-only.
type kvRequest struct {
	gen    uint64
	seq    *batch.Seq
	salt   uint64 // Request.Salt
	want   batch.KVRequest
	tokens []int32

	tables []backend.Table // answer: the sequence's blocks, by cache class
	cached int             // answer to KVOpen: positions that need not be computed
	full   bool            // answer: there was no room
}

func (*kvRequest) Late() {}

type kvEdges struct {
	restarted run.Edge[restarted]
	answer    run.Edge[kvRequest]
	move      run.Counted[move]
}

// kvOwner holds which blocks of the cache belong to whom. The blocks' memory is the device's. Cached ones whose place
// is wanted go to the host's memory, where there is any, and come back for prompts that begin with them: who gets a
// place that is still copied from or to hears of it when the mover has done that. Others' steps go on meanwhile.
type kvOwner struct {
	system      *run.System
	out         kvEdges
	classes     []kv.Class
	stats       *stats
	incarnation int
	gen         uint64
	cache       *kv.Cache
	waiting     []*kvRequest // whose answers wait for moves, in order
	spare       []*move
}

func (k *kvOwner) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		k.cache = kv.New(k.classes...)
		if k.incarnation > 0 {
			k.out.restarted.Send(&restarted{})
		}
	case *run.Flush:
		k.gen = m.Gen
		k.cache.Lose()                // what lies in the host's memory is there in the next generation, too
		k.waiting, k.spare = nil, nil // older moves may still be in a mailbox
		k.out.move.Reset()
		m.Done()
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
	default:
		k.system.Lifecycle(c)
	}
	k.stats.setKV(k.cache.Stats())
}

// moved takes a move back. One that failed leaves a block without its content: everything begins anew.
func (k *kvOwner) moved(m *move) {
	if m.err != nil {
		panic(m.err)
	}
	k.cache.Moved()
	k.spare = append(k.spare, m)
	k.out.move.Give()
}

// proceed has moves begin, as many as the mover takes, and answers those who wait for none.
func (k *kvOwner) proceed() {
	for k.out.move.Held() < movesAhead {
		next, ok := k.cache.NextMove()
		if !ok {
			break
		}
		m := &move{}
		if n := len(k.spare); n > 0 {
			m, k.spare = k.spare[n-1], k.spare[:n-1]
		}
		*m = move{gen: k.gen, Move: next}
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
}

// serve carries out a request. The cache's errors other than “full” are broken invariants of ours.
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

// open pins what is cached of the tokens and grants the rest, or nothing at all.
func (k *kvOwner) open(id kv.Seq, m *kvRequest) error {
	var err error
	if m.cached, err = k.cache.Open(id, m.salt, m.tokens); errors.Is(err, kv.ErrFull) {
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
