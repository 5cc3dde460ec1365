package batch

import "github.com/sluice-ai/sluice/internal/backend"

// KVOp is what a sequence asks of the KV owner.
type KVOp uint8

const (
	KVNone    KVOp = iota
	KVOpen         // pin the cached prefix of Tokens, and grant blocks up to N in all
	KVGrow         // grant N more blocks
	KVPublish      // positions before N are computed: make their whole blocks shareable
	KVClose        // give everything back
)

// ahead is how many free positions a decoding sequence keeps, so that a grant is there before it is needed.
const ahead = 16

// NextKV returns the request that the sequence should make now, if any, and marks it as under way. The answer
// comes back through KVDone or KVRefused.
func (s *State) NextKV(q *Seq) (op KVOp, n int) {
	if q.kv.asked {
		return KVNone, 0
	}
	op, n = s.wantKV(q)
	q.kv.asked = op != KVNone
	return op, n
}

func (s *State) wantKV(q *Seq) (KVOp, int) {
	switch {
	case q.phase == ended && !q.kv.open:
		return KVNone, 0
	case q.kv.open && q.done/backend.BlockSize > q.kv.published/backend.BlockSize && !q.Score:
		return KVPublish, q.done
	case q.phase != running && q.kv.open:
		return KVClose, 0 // ended, or preempted
	case q.phase == waiting && !q.kv.refused && q.credit() && s.admits(q):
		return KVOpen, blocksFor(min(len(q.Tokens)+ahead, q.MaxLen))
	case q.phase == running && !q.kv.refused:
		if n := blocksFor(min(len(q.Tokens)+ahead, q.MaxLen)) - len(q.table); n > 0 {
			return KVGrow, n
		}
	}
	return KVNone, 0
}

// admits says whether the waiting sequence is next in line and a place is free. Order of arrival is kept: a
// short request does not pass a long one that waits for blocks. Only those whose clients do not read are passed.
func (s *State) admits(q *Seq) bool {
	places := s.limits.Seqs - s.Running()
	if places <= 0 {
		return false
	}
	for _, p := range s.seqs {
		switch {
		case p == q:
			return places > 0
		case p.phase != waiting || !p.credit():
		case p.kv.refused:
			return false
		default:
			places--
		}
	}
	return false
}

// KVDone takes the answer to a request. For KVOpen, blocks is the table and cached the number of positions
// that need not be computed; for KVGrow, blocks are the new ones.
func (s *State) KVDone(q *Seq, op KVOp, blocks []int32, n int) {
	q.kv.asked = false
	switch op {
	case KVOpen:
		q.kv.open = true
		q.kv.published = n
		q.table = append(q.table[:0], blocks...)
		q.done = n
		if q.phase == waiting {
			s.move(q, running)
		}
	case KVGrow:
		q.table = append(q.table, blocks...)
	case KVPublish:
		q.kv.published = n
	case KVClose:
		q.kv.open, q.kv.published, q.done, q.table = false, 0, 0, nil
		s.roomMade()
	}
	if q.phase == ended && !q.kv.open {
		s.forget(q)
	}
}

// KVRefused says that there was no room. The sequence asks again when room was made.
func (s *State) KVRefused(q *Seq) {
	q.kv.asked, q.kv.refused = false, true
	if q.phase == ended && !q.kv.open {
		s.forget(q)
	}
}

func (s *State) roomMade() {
	for _, q := range s.seqs {
		q.kv.refused = false
	}
}

// relieve breaks a deadlock: a sequence could go on but for blocks or a place, and nothing else can run. Who holds
// blocks without a client that reads gives them back first, else the youngest running sequence; it is recomputed
// later. relieve returns a sequence that cannot be helped: it alone needs more than there is.
func (s *State) relieve() (hopeless *Seq) {
	var stuck, youngest, unread *Seq
	holders := 0
	for _, q := range s.seqs {
		if q.kv.asked || q.phase == ended {
			return nil // an answer is due that may change things
		}
		if q.credit() && (q.kv.refused || q.phase == waiting) && (stuck == nil || q.phase == running) {
			stuck = q
		}
		if q.phase == running {
			youngest = q
			holders++
			if !q.credit() && !q.Score { // a score is without credit after each chunk, for a moment
				unread = q
			}
		}
	}
	switch {
	case stuck == nil:
	case unread != nil:
		s.move(unread, waiting)
	case !stuck.kv.refused: // it was not asked for yet
	case holders == 0, holders == 1 && youngest == stuck:
		return stuck
	case stuck.phase == running:
		s.move(youngest, waiting)
	}
	return nil
}
