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

// KVRequest is a request to the KV owner. Classes that keep all blocks get them up to position End at once; classes
// that give blocks back on the way, only up to Soon, as far as the next steps reach.
type KVRequest struct {
	Op        KVOp
	End, Soon int
}

// ahead is how many granted positions a decoding sequence keeps in reserve, so that a grant is there before it is
// needed.
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
	if q.Follows {
		done = min(done, q.sure) // what is shared cannot be taken back
	}
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

// reach is the position up to which a sequence asks for blocks.
func (q *Seq) reach() int { return min(len(q.Tokens)+q.pending+ahead, q.MaxLen) }

// short says that a sequence lacks blocks, now or soon.
func (s *State) short(q *Seq) bool {
	end := q.reach()
	return backend.BlocksFor(end) > backend.BlocksFor(q.kv.end) || q.room() < min(end, q.planned+s.limits.Rows)
}

// admits says whether there is a place for q, and q is the next to get one. The order is strict: a short request
// does not overtake a long one that waits for blocks. Nothing is admitted while a request for blocks by another
// client is under way, or a running sequence lacks blocks to go on: q would take what was freed for these. The
// blocks of a preempted sequence are for those that run: until one of them has ended, no sequence that was preempted
// for want of blocks comes back, unless its client has no place.
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

// KVDone records that a request was granted. tables are the sequence's blocks now, by class; the caller does not
// change them any more. cached is, for KVOpen, the number of positions that were found in the prefix tree.
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

// KVRefused records that there was no room for a request. The sequence asks again when room was made.
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

// begins is the sum of the first positions, in blocks, that the tables hold: it grows when blocks are given back.
func (q *Seq) begins() (sum int) {
	for i := range q.tables {
		sum += q.tables[i].First
	}
	return sum
}

// relieve breaks a deadlock, in which a sequence lacks only blocks or a place, and nothing else can run. It preempts
// a sequence that rests or whose session does not read, or else the youngest one of the client that holds most places;
// that one is recomputed later. It returns a sequence that needs more blocks than there are even when it runs alone.
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
			if q.rests || !q.credit() && !q.Score { // a score is without credit after each chunk, for a moment
				unread = q
			}
		}
	}
	switch {
	case stuck == nil:
	case unread != nil:
		s.move(unread, waiting)
	case !stuck.kv.refused: // its blocks were not asked for yet
	case holders == 0, holders == 1 && last == stuck:
		return stuck
	case stuck.phase == running:
		q := s.richest().youngest()
		q.evicted, s.crowded = true, true
		s.move(q, waiting)
	}
	return nil
}
