package actors

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/kv"
)

// All that the KV owner accepts, from the scheduler: flush, and
//
// kvRequest asks for blocks, or gives them back. It is the sequence's only request under way; the same struct
// returns as the answer. tokens is read-only.
type kvRequest struct {
	gen    uint64
	seq    *sequence
	op     batch.KVOp
	n      int
	tokens []int32

	blocks []int32 // answer: granted blocks
	full   bool    // answer: there was no room
}

func (*kvRequest) Late() {}

// kvOwner holds which blocks of the cache belong to whom. The blocks' memory is the device's.
type kvOwner struct {
	*core
	out         kvEdges
	incarnation int
	gen         uint64
	cache       *kv.Cache
}

func (k *kvOwner) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		k.cache = kv.New(k.layout.Blocks)
		if k.incarnation > 0 {
			k.out.restarted.Send(&restarted{})
		}
	case *run.Flush:
		k.gen = m.Gen
		k.cache.Reset()
		m.Done()
	case *kvRequest:
		if m.gen == k.gen {
			k.serve(m)
			k.out.answer.Send(m)
		}
	default:
		k.system.Lifecycle(c)
	}
	k.stats.setKV(k.cache.Stats())
}

// serve carries out a request. The cache's errors other than “full” are broken invariants of ours.
func (k *kvOwner) serve(m *kvRequest) {
	id := kv.Seq(m.seq.ID)
	m.blocks, m.full = m.blocks[:0], false
	var err error
	switch m.op {
	case batch.KVOpen:
		err = k.open(id, m)
	case batch.KVGrow:
		err = k.grow(id, m, m.n)
	case batch.KVPublish:
		err = k.cache.Publish(id, m.tokens)
	case batch.KVClose:
		err = k.cache.Close(id)
	}
	if err != nil {
		panic(err)
	}
}

// open pins what is cached of the tokens and grants the rest of m.n blocks, or nothing at all.
func (k *kvOwner) open(id kv.Seq, m *kvRequest) error {
	shared, cached, err := k.cache.Open(id, m.tokens)
	if err != nil {
		return err
	}
	for _, b := range shared {
		m.blocks = append(m.blocks, int32(b))
	}
	if err := k.grow(id, m, m.n-len(shared)); err != nil {
		return err
	}
	m.n = cached
	if m.full {
		return k.cache.Close(id)
	}
	return nil
}

func (k *kvOwner) grow(id kv.Seq, m *kvRequest, n int) error {
	if n <= 0 {
		return nil
	}
	more, err := k.cache.Grow(id, n)
	if errors.Is(err, kv.ErrFull) {
		m.full = true
		return nil
	}
	for _, b := range more {
		m.blocks = append(m.blocks, int32(b))
	}
	return err
}
