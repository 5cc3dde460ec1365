package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/sample"
)

// step is one pass over the model on its way scheduler → device → sampler → scheduler, with its place in the ring of
// the device's model. It is refilled each time: whoever received it last owns it.
type step struct {
	guest   *guest // whose model's it is
	gen     uint64
	number  uint64        // of all steps that were planned
	compute *backend.Step // its logits are nil once the model is closed
	parts   []batch.Part
	results []outcome // by part
	err     error
	delays  delays // until it was planned

	over      bool // the device's actor knows that it has ended
	contended bool // other models had work for the device when it ended

	meet  atomic.Uint32 // where the device's actor and whoever calls ended find out which of them comes second
	ended func(error)   // told by the device that nothing of the step runs any more; bound once

	experts []int32       // that its rows chose last; written by tell
	told    atomic.Uint32 // as meet, of the device's actor and whoever calls tell
	tell    func([]int32) // bound once

	times struct {
		planned, started, computed, sampling, sampled time.Time
		waited                                        time.Duration                  // for weights
		segments                                      [ir.SegmentKinds]time.Duration // by kind
	}
}

// newStep makes a step of a guest. What the device ends only after left was called, and what it tells late, comes to
// its actor by a message.
func newStep(g *guest, compute *backend.Step, out *deviceEdges) *step {
	m := &step{guest: g, compute: compute, results: make([]outcome, g.spec.limits.Seqs)}
	m.ended = func(err error) {
		m.times.computed = now()
		if m.err == nil {
			m.err = err
		}
		if m.meet.Swap(1) == 1 {
			out.computed.Send(&computed{m})
		}
	}
	m.tell = func(experts []int32) {
		m.experts = append(m.experts[:0], experts...)
		if m.told.Swap(1) == 1 {
			out.told.Send(&told{m})
		}
	}
	return m
}

// left is called once the step is enqueued and its end was asked for; it says whether the device ended it already.
func (m *step) left() bool { return m.meet.Swap(1) == 1 }

func (*step) Late()      {}
func (*step) Poisonous() {}

// outcome is what sampling made of a part that wanted a token.
type outcome struct {
	sample.Result
	err error
}

// sequence is the scheduler's handle of one submission of a request. It is used once: a request that starts
// again submits a new one.
type sequence struct {
	batch.Seq
	session *actor.PID
	params  *sample.Params
	salt    uint64       // Request.Salt
	state   sample.State // after the last token
	rows    []float32    // Score: logits of the rows of the last step

	opened    time.Time  // its request; zero once it had rows in a step
	kv        *kvRequest // the request under way or the next one
	cached    int        // positions that the first KV open found in the cache
	cancelled atomic.Bool
	consumed  atomic.Uint64 // tokens taken by the client's side
	starved   atomic.Bool   // the scheduler leaves it out until a wake
	wakeUp    func()        // sends wake

	out    [batch.Window]tokenMessage
	submit submit
	cancel cancel
	wake   wake
}

// tokenMessage brings a session its next token, or the rows of a score. Its slot is free again when the
// session's side has consumed it.
type tokenMessage struct {
	seq    *sequence
	result sample.Result
	end    batch.End
	pos    int // Score: position of the first row of seq.rows
	cached int
	step   uint64    // its number
	at     time.Time // when it was sampled
}

func (*tokenMessage) Late() {}

// seqFailed tells a session that its sequence cannot go on.
type seqFailed struct {
	seq *sequence
	err error
}

func (*seqFailed) Late() {}
