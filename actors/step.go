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

// step is one pass over the model on its way scheduler → device → sampler → scheduler. There is one in a
// generation, refilled each time: whoever received it last owns it.
type step struct {
	gen     uint64
	compute backend.Step
	parts   []batch.Part
	results []outcome // by part
	err     error
	times   struct {
		planned, started, computed, sampling, sampled time.Time
		segments                                      [ir.SegmentKinds]time.Duration // by kind
	}
}

func newStep(sequences int) *step { return &step{results: make([]outcome, sequences)} }

func (*step) late() {}

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
	state   sample.State // after the last token
	rows    []float32    // Score: logits of the rows of the last step

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
	at     time.Time // when it was sampled
}

func (*tokenMessage) late() {}

// seqFailed tells a session that its sequence cannot go on.
type seqFailed struct {
	seq *sequence
	err error
}

func (*seqFailed) late() {}
