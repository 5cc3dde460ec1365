package actors

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/kv"
)

// transfer, from the facade, has the cached blocks of a text copied out of the caches, or blocks of one copied in, or
// has it forgotten. While it is under way it holds blocks as a sequence does, and the KV owner has the mover copy them
// message by message, between the moves of others.
type transfer struct {
	do     transferOp
	salt   uint64
	tokens []int32 // of whole blocks

	// ready is called before the first block is copied, with what the tables have and how large the blocks of each class
	// are; carry for each block i of a class's table, to write the memory or to fill it. Both are called by the mover.
	ready func(tables []backend.Table, each []int) error
	carry func(class, i int, memory []byte) error

	cached int             // positions of which blocks are copied, or, with forget, were dropped
	tables []backend.Table // the blocks
	sent   bool            // the mover has it
	copied int             // blocks

	mu     sync.Mutex // held by the mover while it copies: one that is over may still be in its hands
	failed error      // by ready or carry
	err    error      // set with done
	once   sync.Once
	done   chan struct{}
}

func (*transfer) Late() {}

// Refused ends a transfer whose model is gone.
func (t *transfer) Refused() { t.end(ErrClosed) }

type transferOp uint8

const (
	copyOut transferOp = iota + 1
	copyIn
	forget
)

// transferSeq is the number of the sequence that a transfer is to the books. Requests count from 1.
const transferSeq = kv.Seq(math.MaxUint64)

// ErrCrowded is wrapped by the error of a session that can be saved or restored later.
var ErrCrowded = errors.New("try again later")

var (
	errMoved  = fmt.Errorf("the model was restarted meanwhile: %w", ErrCrowded)
	errNoRoom = fmt.Errorf("answers take all of the cache: %w", ErrCrowded)
)

// end tells the facade that the transfer is over; a nil one has none to tell.
func (t *transfer) end(err error) {
	if t != nil {
		t.once.Do(func() {
			t.err = err
			close(t.done)
		})
	}
}

// over says whether the transfer has ended: the facade has gone on, and what it gave is no more the mover's.
func (t *transfer) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// blocks is how many blocks the tables have.
func (t *transfer) blocks() (n int) {
	for i := range t.tables {
		n += len(t.tables[i].Blocks)
	}
	return n
}
