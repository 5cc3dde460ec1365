package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/speculate"
)

// sequence is the scheduler's part of a request: one submission of it. It is used once: a request that starts again
// submits a new one.
// Wide: its messages are part of it, so that none is allocated for a token.
type sequence struct {
	batch.Seq
	of      *asked
	session *actor.PID
	bound   *constrain.Constraint // nil: its tokens are free
	mask    *mask                 // under way, or the next one
	tore    int                   // how often masks failed on it
	state   sample.State          // after the last token
	source  speculate.Source      // proposes its tokens; nil: nothing is guessed
	guesses *speculate.Adaptive   // chooses how many tokens of source are tried, or of draft
	drafts  bool                  // a draft model may guess its tokens
	draft   *draft                // guesses its tokens, too; nil: nothing follows it
	follows *draft                // it belongs to; nil: it follows nothing
	hidden  *hidden               // for a head that guesses its tokens; nil: none does
	rows    []float32             // Score: logits of the rows of the last step

	spending  spending
	fresh     bool       // its request had no rows in any step yet
	kv        *kvRequest // the request under way or the next one
	prompt    *progress  // its request's; nil: nobody wants to know
	cached    int        // positions that the first KV open found in the cache
	cancelled atomic.Bool
	credit

	out    [batch.Window]tokenMessage
	submit submit
	cancel cancel
	wake   wake
}

// tokenSlack is the number of generated tokens for which room is allocated at once.
const tokenSlack = 1024

type ( // what the scheduler hears of it
	// submit, from a session, asks for this sequence to be computed.
	submit struct{ seq *sequence }
	// cancel, from a session, asks for this sequence to be dropped. It may be repeated, and may name a sequence that
	// is gone.
	cancel struct{ seq *sequence }
	// wake, from a stream, says that a starved sequence has credit again.
	wake struct{ seq *sequence }
)

func (*submit) Late()   {}
func (*cancel) Urgent() {}
func (*cancel) Late()   {}
func (*wake) Late()     {}

// draft is a draft model's sequence, which follows one of its target and guesses how that goes on. The target's
// scheduler makes it, and asks for tokens; it asks again only when it was answered.
type draft struct {
	seq  sequence // belongs to the draft model's scheduler
	of   *sequence
	by   int   // the incarnation of the target's scheduler that made it
	asks asked // how it draws

	heard heard // of hidden states

	read int  // tokens of the text that were read, as last answered; for the target
	due  bool // an answer is; likewise
	owed bool // the same; for the draft model

	ask    follow
	answer drafted
}

type (
	// follow, from a target's scheduler to that of its draft model, gives a sequence the text that it follows, and asks
	// for most tokens after it. It begins the sequence, or the target's steps wait for the answer, or neither.
	follow struct {
		draft         *draft
		text          []int32
		most          int
		begins, waits bool
	}
	// drafted, the answer, has these tokens. If the sequence is lost there are none.
	drafted struct {
		draft  *draft
		tokens []int32
		lost   bool
	}
	// parted, between these schedulers, says that its sender has lost all drafts; or, from the house, that the draft
	// model is gone.
	parted struct{ gone bool }
)

func (*follow) Late()  {}
func (*drafted) Late() {}
func (*parted) Late()  {}

// reached tells who reads the answer how far the prompt is computed, after a step with so many rows of the sequence.
func (h *sequence) reached(rows int) {
	if done := h.Done(); h.prompt != nil && done-rows < h.Prompt {
		h.prompt.cached.Store(int64(max(h.cached, 0)))
		h.prompt.done.Store(int64(done))
	}
}

// before is the text before a sequence's tokens, if it is of a head, which begins late.
func (h *sequence) before() []int32 {
	if x := h.follows; x != nil {
		return x.ask.text[:x.heard.base]
	}
	return nil
}

func newKVRequest(q *sequence) *kvRequest { return &kvRequest{seq: &q.Seq, of: q.of} }

func newMask(q *sequence) *mask { return &mask{seq: &q.Seq, bound: q.bound, gone: &q.cancelled} }

// tokenMessage brings a session its next token, or the rows of a score. Its place in sequence.out is used again when
// the reader has consumed it.
type tokenMessage struct {
	seq    *sequence
	result sample.Result
	end    batch.End
	pos    int // Score: position of the first row of seq.rows
	cached int
	tried  int       // tokens that were guessed for the step and tried; with the step's first token only
	right  int       // how many of them were accepted; likewise
	step   uint64    // number of the step
	spent  bill.Bill // the request's, as of then
	at     time.Time // when it was sampled
}

func (*tokenMessage) Late() {}

// message returns the sequence's next message, with what it takes from the step.
func (h *sequence) message(of *step) *tokenMessage {
	m := &h.out[h.Sent()%batch.Window]
	*m = tokenMessage{seq: h, cached: max(h.cached, 0), at: of.times.sampled, step: of.number,
		spent: h.spending.bill}
	h.spending.bill.Decodes()
	return m
}

// seqFailed tells a session that its sequence cannot go on.
type seqFailed struct {
	seq *sequence
	err error
}

func (*seqFailed) Late() {}
