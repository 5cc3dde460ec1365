package batch

import "github.com/sluice-ai/sluice/internal/backend"

// KVOp is what a sequence asks of the KV owner.
type KVOp uint8

const (
	KVNone  KVOp = iota
	KVOpen       // pin the cached prefix of Tokens, and grant blocks up to End, and up to Soon after the prefix
	KVGrow       // grant blocks up to End, and up to Soon
	KVPass       // positions before End are computed: share their whole blocks, give back what no row sees any more
	KVClose      // give everything back
)

// KVRequest is a request to the KV owner. Blocks that are kept to the end are granted up to position End at once; those
// that are given back on the way, only as far as the next steps reach.
type KVRequest struct {
	Op        KVOp
	End, Soon int
}

// ahead is how many free positions a decoding sequence keeps, so that a grant is there before it is needed.
const ahead = 16

// NextKV returns the request that the sequence should make now, if any, and marks it as under way. The answer
// comes back through KVDone or KVRefused.
func (s *State) NextKV(q *Seq) KVRequest {
	if q.kv.asked {
		return KVRequest{}
	}
	r := s.wantKV(q)
	q.kv.asked = r.Op != KVNone
	if r.Op == KVOpen {
		s.move(q, entering)
	}
	return r
}

func (s *State) wantKV(q *Seq) KVRequest {
	done := min(q.done, len(q.Tokens)) // a token that was drawn after the sequence's end has no place in Tokens
	switch {
	case q.phase == ended && !q.kv.open:
	case q.kv.open && done/backend.BlockSize > q.kv.passed/backend.BlockSize:
		return KVRequest{Op: KVPass, End: done - done%max(s.limits.Redo, 1)} // where a step that fails begins again
	case q.phase != running && q.kv.open: // ended, or preempted
		if q.flying == 0 {
			return KVRequest{Op: KVClose}
		}
	case q.phase == waiting && q.able() && s.admits(q):
		return KVRequest{KVOpen, q.reach(), s.limits.Rows}
	case q.phase == running && !q.kv.refused && s.short(q):
		return KVRequest{KVGrow, q.reach(), q.planned + s.limits.Rows}
	}
	return KVRequest{}
}

// reach is the position up to which a sequence wants blocks.
func (q *Seq) reach() int { return min(len(q.Tokens)+q.pending+ahead, q.MaxLen) }

// short says that a sequence lacks blocks, now or soon.
func (s *State) short(q *Seq) bool {
	end := q.reach()
	return backend.BlocksFor(end) > backend.BlocksFor(q.kv.end) || q.room() < min(end, q.planned+s.limits.Rows)
}

// admits says whether a place is free and the waiting sequence first in line. The line's order is kept: a short request
// does not pass a long one that waits for blocks, and while one client's requests for blocks are under way, no other's
// are made: what was freed for one would go to the other. So it is with a running sequence that lacks blocks to go on.
// What a preempted sequence leaves is for those that run: until one of them has ended, none comes back that was
// preempted for want of blocks, but for one of a client that has no other.
func (s *State) admits(q *Seq) bool {
	if q.kv.refused || s.counts[entering] > q.client.entering || s.crowded && q.evicted && q.client.held > 0 {
		return false
	}
	for _, p := range s.seqs {
		if p.phase == running && p.able() && s.left(p) > p.room()-p.planned && s.short(p) {
			return false
		}
	}
	s.rewind()
	for range s.places() {
		if p := s.nextIn(); p == q || p == nil || !p.kv.open {
			return p == q
		} // else it has yet to give blocks back, and is before this one
	}
	return false
}

// KVDone takes the answer to a request. tables are the sequence's blocks now, by class, whose numbers nobody changes
// any more; cached is the number of positions that need not be computed, for KVOpen.
func (s *State) KVDone(q *Seq, r KVRequest, tables []backend.Table, cached int) {
	q.kv.asked = false
	gave := q.begins() // of the old tables
	q.tables = append(q.tables[:0], tables...)
	switch r.Op {
	case KVOpen:
		q.kv.open, q.kv.passed, q.kv.end = true, cached, r.End
		q.done, q.planned = cached, cached
		if q.phase == entering {
			s.move(q, running)
		}
	case KVGrow:
		q.kv.end = r.End
	case KVPass:
		q.kv.passed = r.End
		if q.begins() != gave {
			s.roomMade()
		}
	case KVClose:
		q.kv.open, q.kv.passed, q.kv.end, q.done, q.planned = false, 0, 0, 0, 0
		s.crowded = s.crowded && q.phase != ended
		s.roomMade()
	}
	if q.phase == ended && !q.kv.open {
		s.forget(q)
	}
}

// KVRefused says that there was no room. The sequence asks again when room was made.
func (s *State) KVRefused(q *Seq) {
	q.kv.asked, q.kv.refused = false, true
	if q.phase == entering {
		s.move(q, waiting)
	}
	if q.phase == ended && !q.kv.open {
		s.forget(q)
	}
}

func (s *State) roomMade() {
	for _, q := range s.seqs {
		q.kv.refused = false
	}
}

// begins adds up where the tables begin: it grows when blocks were given back.
func (q *Seq) begins() (sum int) {
	for i := range q.tables {
		sum += q.tables[i].First
	}
	return sum
}

// relieve breaks a deadlock: a sequence could go on but for blocks or a place, and nothing else can run. Who holds
// blocks without a client that reads gives them back first, else the youngest of the client that holds most places; it
// is recomputed later. relieve returns a sequence that cannot be helped: it alone needs more than there is.
func (s *State) relieve() (hopeless *Seq) {
	var stuck, last, unread *Seq
	holders := 0
	for _, q := range s.seqs {
		if q.kv.asked || q.phase == ended || q.phase == waiting && q.kv.open || q.phase == running && q.mask != found {
			return nil // an answer is due, or blocks come back, that may change things
		}
		if q.able() && (q.kv.refused || q.phase == waiting) && (stuck == nil || q.phase == running) {
			stuck = q
		}
		if q.phase == running {
			last = q
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
	case holders == 0, holders == 1 && last == stuck:
		return stuck
	case stuck.phase == running:
		q := s.richest().youngest()
		q.evicted, s.crowded = true, true
		s.move(q, waiting)
	}
	return nil
}
