package batch

import (
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// ID names a sequence; it is never used again.
type ID uint64

// Window is the credit of a sequence: tokens that may be on their way to a session that has not consumed them.
const Window = 32

// Terms are what a request says of its sequences. Nobody changes them once a sequence has them: all sequences of a
// request share them, and anybody may read them. A sequence that follows another one has Terms of its own, which Follow
// changes.
type Terms struct {
	Client string // whose it is: clients share places and rows, and take turns where masks are to be found
	Prompt int    // how many tokens are the prompt; of a score, all
	Cached int    // of its tokens, those that were in the prefix tree when it was asked for, as far as is known
	MaxLen int    // a sequence ends when it holds so many tokens
	Ends   func(token int32) bool
	// Adapters change the model for its rows.
	Adapters []ir.Applied
	Promised bool // it was told when it would be answered: those that come later do not hold its client's first one up
	Score    bool // every position's logits are wanted, nothing is generated, the prefix cache is not used

	Pictures []Picture // in the prompt, in order
	Heard    int       // so many positions of the prompt an encoder has read: they are all of its first picture
	Axes     bool      // the model's positions have several axes: where there are pictures, they differ
}

// Seq is one sequence under the scheduler's care. The exported fields are set before Submit and belong to
// the State afterwards, but for the Terms, and for Tokens[:n], which never changes once written and may be read
// anywhere.
// Wide: all that decides whose rows come next is asked of a sequence.
type Seq struct {
	*Terms
	ID     ID
	Tokens []int32 // prompt, then what was generated
	Host   bool    // its tokens are sampled by the host, also where the device draws
	Owner  any     // the scheduler's handle of it

	// Follows says that Follow gives it another sequence's tokens from time to time. When it has drawn as many after
	// them as it was asked for it rests, with its blocks. What it has drawn is shared with nobody: it may turn out
	// wrong. There are no recurrent states, and no Ends.
	Follows bool
	// Anew says that rows of what it has drawn itself are computed again once these tokens are the other sequence's: what
	// goes into them beside the token is another thing then.
	Anew bool

	// Proposer guesses the tokens that follow; nil: none are proposed. While it is ready, only one step in flight
	// draws tokens for the sequence: how many are accepted, and so the next row's position, is known only when that
	// step is back.
	Proposer Proposer

	text    []int32 // what Text returns; nil: Tokens
	client  *client
	phase   phase
	arrival uint64
	done    int             // positions computed
	reached int             // positions computed when it gave its place up
	evicted bool            // preempted for want of blocks, once
	planned int             // positions that are computed or in steps in flight
	flying  int             // steps in flight with rows of it
	pending int             // tokens, or chunks of a score, that the steps in flight give it at most
	drew    draw            // where the newest pending token is drawn
	tables  []backend.Table // granted KV blocks, by cache class
	kv      kvState
	mask    mask
	rests   bool   // Follows: until it is given more tokens
	sure    int    // Follows: how many of Tokens are the other sequence's
	kept    bool   // Promised, and the first of its client: see promise
	turn    uint64 // when its newest mask was asked for
	walk    uint64 // Promised: State.promises.walk in which it was given a place
	strikes int    // steps that failed with this sequence in them
	failed  int    // position that it would have reached in them: passing it clears strikes
	sent    uint64 // tokens, or chunks of a score, that were delivered
	got     uint64 // tokens that the session consumed, as last told
}

// draw is a token that a step in flight draws.
type draw struct {
	step  uint64 // number of the step
	index int    // among its wanted rows
}

type phase uint8

const (
	waiting  phase = iota // for a place and KV blocks
	entering              // a place is its own, and blocks were asked for
	running
	ended
)

// kvState mirrors what the KV owner holds for the sequence. At most one request is under way.
type kvState struct {
	open    bool
	asked   bool
	refused bool // the last request found no room; asked again when room was made
	passed  int  // positions that the KV owner was told are computed
	end     int  // position up to which blocks are granted in classes that keep all
}

// EndsBy says whether the sequence ends with a token that comes after its tokens and so many more.
func (q *Seq) EndsBy(after int, token int32) bool {
	return q.Ended(after, token) != NotEnded
}

// Ended says how the sequence ends, if at all, with a token that comes after its tokens and so many more.
func (q *Seq) Ended(after int, token int32) End { return q.endOf(len(q.Tokens)+after+1, token) }

// endOf says whether the sequence is at its end when it has so many tokens, and this is the last one.
func (q *Seq) endOf(n int, token int32) End {
	switch {
	case q.Ends != nil && q.Ends(token):
		return EndToken
	case n >= q.MaxLen:
		return EndLength
	}
	return NotEnded
}

// Done returns the number of positions computed.
func (q *Seq) Done() int { return q.done }

// Text returns the keys by which the prefix tree knows the first n positions: their tokens. Where rows of prompts
// and of answers are apart (Limits.Apart), an answer's tokens have other numbers: the bits of its blocks differ from
// those of a prompt with the same tokens, and only a sequence that would compute the same bits may find them. So a
// request that continues an answer computes it anew, and gets the same result as with an empty cache. Rows of pictures
// have numbers by what the pictures show.
func (q *Seq) Text(n int) []int32 {
	if q.text != nil {
		return q.text[:n:n]
	}
	return q.Tokens[:n:n]
}

// answered is the number that an answer's token has in Text where rows are apart.
func answered(token int32) int32 { return ^token }

// reading says that the sequence's next row is of its prompt.
func (q *Seq) reading() bool { return q.planned < q.Prompt }

// room is the number of positions for which every class has granted blocks; no bound if there are no classes.
func (q *Seq) room() int {
	room := math.MaxInt
	for i := range q.tables {
		room = min(room, q.tables[i].Room())
	}
	return room
}

// Sent returns how many tokens, or chunks of a score, were delivered.
func (q *Seq) Sent() uint64 { return q.sent }

// credit says whether one more token may be sent, after those that are on their way. A score has at most one chunk
// under way. A sequence that waits is let in again when its client has read half a window: less would not be worth
// the recomputation.
func (q *Seq) credit() bool {
	switch unread := q.unread(); {
	case q.Score:
		return unread == 0
	case q.phase == waiting:
		return unread <= Window/2
	default:
		return unread < Window
	}
}

// unread is the number of tokens that are on their way to the session, or may be.
func (q *Seq) unread() int { return int(q.sent-q.got) + q.pending } //nolint:gosec // at most Window

// able says that the sequence could go on, had it a place and blocks.
func (q *Seq) able() bool { return q.credit() && q.mask == found && !q.rests }

// left is the number of positions that can be planned now. While the newest token is still to be drawn, only the
// step right after the one that draws it can have a row for it, if the device draws.
func (s *State) left(q *Seq) int {
	switch {
	case q.pending == 0 || q.Score:
		return len(q.Tokens) - q.planned
	case s.limits.Draws && !q.Host && q.drew.step == s.steps && len(q.Tokens)+q.pending < q.MaxLen && !q.proposes():
		return 1
	}
	return 0
}

// proposes says whether the sequence has tokens to propose now.
func (q *Seq) proposes() bool { return q.Proposer != nil && q.Proposer.Ready(q.Tokens) }

// decoding says whether only the newest token is left to compute; or the newest few, if accepted guesses are
// computed again because they left no recurrent state (Limits.Redo), or if it follows another sequence.
func (s *State) decoding(q *Seq) bool {
	newest := 1
	if q.Follows || q.Proposer != nil && s.limits.Redo > 0 {
		newest += s.limits.Proposed
	}
	n := s.left(q)
	return n > 0 && n <= newest && !q.Score
}
