package batch

import "github.com/sluice-ai/sluice/internal/backend"

// ID names a sequence; it is never used again.
type ID uint64

// Window is the credit of a sequence: tokens that may be on their way to a session that has not consumed them.
const Window = 32

// Seq is one sequence under the scheduler's care. The exported fields are set before Submit and belong to
// the State afterwards, but for Tokens[:n], which never changes once written and may be read anywhere.
type Seq struct {
	ID     ID
	Tokens []int32 // prompt, then what was generated
	MaxLen int     // the sequence ends when it holds so many tokens
	Ends   func(token int32) bool
	Score  bool // every position's logits are wanted, nothing is generated, the prefix cache is not used
	Owner  any  // the scheduler's handle of it

	phase   phase
	arrival uint64
	done    int     // positions computed
	table   []int32 // granted KV blocks
	kv      kvState
	strikes int // steps that failed with this sequence in them
	failed  int // positions it had to reach in them
	sent    uint64
	got     uint64 // tokens that the session consumed, as last told
}

type phase uint8

const (
	waiting phase = iota // for a place and KV blocks
	running
	ended
)

// kvState mirrors what the KV owner holds for the sequence. At most one request is under way.
type kvState struct {
	open      bool
	asked     bool
	refused   bool // the last request found no room; asked again when room was made
	published int  // positions offered to the prefix tree
}

// Done returns the number of positions computed.
func (q *Seq) Done() int { return q.done }

// room is the number of positions that the granted blocks hold.
func (q *Seq) room() int { return len(q.table) * backend.BlockSize }

// Sent returns how many tokens, or chunks of a score, were delivered.
func (q *Seq) Sent() uint64 { return q.sent }

// credit says whether one more token may be sent. A score has one chunk of rows under way. A sequence that waits is
// let in again when its client has read half a window: less would not be worth computing it again.
func (q *Seq) credit() bool {
	unread := q.sent - q.got
	switch {
	case q.Score:
		return unread == 0
	case q.phase == waiting:
		return unread <= Window/2
	}
	return unread < Window
}

// left is the number of positions that are known and not computed.
func (q *Seq) left() int { return len(q.Tokens) - q.done }

// decoding says that only the newest token is missing.
func (q *Seq) decoding() bool { return q.left() == 1 && !q.Score }

func blocksFor(positions int) int {
	return (positions + backend.BlockSize - 1) / backend.BlockSize
}
