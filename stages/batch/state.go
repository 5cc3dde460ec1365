package batch

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Limits bounds what a step and the running set may hold.
type Limits struct {
	Seqs   int  // sequences that run at once
	Rows   int  // rows of a step
	Wanted int  // rows of a step whose logits are wanted
	Draws  bool // the device draws tokens: a step may go on from what the one before it draws
	Redo   int  // positions: a step that failed is repeated from a multiple of so many; 0: from its first row
	Whole  bool // a sequence is planned whole or not at all; all of them are scores
	Apart  bool // a step has rows either of prompts or of answers: the device computes these in ways that differ by bits
	Beside int  // prefill rows of a step that also decodes: bounds the pause that others' prompts cause
	Pass   int  // positions that a row attends to in the time in which a step reads the weights; 0: they cost nothing

	Proposed int // tokens that are proposed of a sequence in a step, at most
}

// End says why a sequence ended.
type End uint8

const (
	NotEnded End = iota
	EndToken     // it produced one of its end tokens
	EndLength
	EndFailed
)

// State is all sequences and their progress. The zero value is not usable; see New.
type State struct {
	limits   Limits
	seqs     []*Seq // by arrival
	clients  []*client
	clock    uint64 // in rows: what the client had had that was served last; see charge
	byID     map[ID]*Seq
	counts   [ended + 1]int // number of sequences, by phase
	arrivals uint64
	steps    uint64 // planned in all: the newest one's number
	masks    uint64 // asked for in all
	promises promises
	flying   int  // parts of steps in flight
	crowded  bool // a sequence was preempted for want of blocks, and none has given back its own by its end since
	read     bool // with Limits.Apart: the newest step was of prompts

	now    time.Duration // least of the device's time that a client which wants rows has had; see owing
	newest time.Duration // what the newest step took that is back
}

// promises is what State knows of promised sequences.
type promises struct {
	kept []*Seq // see promise
	walk uint64 // number of the walk through the clients
}

// New returns an empty State.
func New(l Limits) *State {
	return &State{limits: l, byID: make(map[ID]*Seq), clock: begun}
}

// begun is where the clock begins: clients may have had less than the one that was served last.
const begun = 1 << 40

// Len counts the sequences that have not ended, or whose blocks are not given back yet.
func (s *State) Len() int { return len(s.seqs) }

// Seqs lists the sequences by arrival. The caller must not change the slice.
func (s *State) Seqs() []*Seq { return s.seqs }

// Waiting counts the sequences that have no place, or have yet to get its blocks.
func (s *State) Waiting() int { return s.counts[waiting] + s.counts[entering] }

// Running counts the sequences that hold a place.
func (s *State) Running() int { return s.counts[running] }

func (s *State) move(q *Seq, to phase) {
	if q.phase == running && to == waiting {
		q.reached = max(q.reached, q.done)
	}
	s.counts[q.phase]--
	q.client.count(q.phase, -1)
	q.phase = to
	q.client.count(to, 1)
	s.counts[to]++
}

// Submit takes a sequence in. Its progress fields must be zero.
func (s *State) Submit(q *Seq) {
	s.arrivals++
	q.arrival = s.arrivals
	if s.limits.Apart || len(q.Pictures) > 0 {
		q.text = append(make([]int32, 0, cap(q.Tokens)), q.Tokens...)
		q.keys(q.text)
		for i := q.Prompt; s.limits.Apart && i < len(q.text); i++ {
			q.text[i] = answered(q.text[i])
		}
	}
	q.sure = len(q.Tokens)
	s.enroll(q)
	s.seqs = append(s.seqs, q)
	s.byID[q.ID] = q
	s.counts[q.phase]++
	if q.Promised {
		s.promise()
	}
}

// Cancel ends a sequence; one that is gone already is no error.
func (s *State) Cancel(id ID) {
	if q := s.byID[id]; q != nil {
		s.end(q)
	}
}

// Consumed tells how many tokens of the sequence its session has taken in all.
func (s *State) Consumed(q *Seq, total uint64) { q.got = max(q.got, total) }

// Live says whether the sequence still wants tokens.
func (s *State) Live(q *Seq) bool { return q.phase != ended }

// Starved says that the sequence waits for its client to read.
func (s *State) Starved(q *Seq) bool { return q.phase != ended && !q.credit() }

// Wait is what a sequence waits for before it has rows in a step.
type Wait uint8

const (
	WaitNothing Wait = iota // it has ended, or rests
	WaitStep                // a step in flight has rows of it
	WaitMask
	WaitReader // its client has to read
	WaitPlace  // among those that run; it has not run yet
	WaitBlocks // of the KV cache
	WaitTurn   // all is there but a step
)

// Awaits says what a sequence waits for.
func (s *State) Awaits(q *Seq) Wait {
	switch {
	case q.phase == ended, q.rests:
		return WaitNothing
	case q.flying > 0:
		return WaitStep
	case q.mask != found:
		return WaitMask
	case !q.credit():
		return WaitReader
	case q.phase == waiting && !q.kv.refused && q.reached == 0:
		return WaitPlace
	case q.phase != running, s.left(q) > 0 && q.room() <= q.planned:
		return WaitBlocks
	}
	return WaitTurn
}

// Ahead is what is still to be computed of a sequence, and how it stands with others for places and rows.
type Ahead struct {
	Client  string
	At      int  // positions that are computed, or in steps in flight, or are expected to be found in the prefix tree
	Left    int  // tokens that follow and are known, or are about to be drawn
	Answer  int  // tokens that it may have after them
	Sent    int  // tokens of its answer that are there
	Reading bool // what follows is of its prompt

	Promised bool
	Runs     bool          // it has a place
	Ran      int           // positions since it got it, or beyond what it had reached before
	Had      time.Duration // of the device's time that its client has had, beyond who has had least
	Rows     int           // that its client has had, beyond who was served last
}

// Ahead appends what is still to be computed, by arrival. Sequences whose clients do not read are left out, and those
// that follow others.
func (s *State) Ahead(dst []Ahead) []Ahead {
	for _, q := range s.seqs {
		if q.phase == ended || q.Follows || !q.credit() {
			continue
		}
		at, known := q.planned, len(q.Tokens)+q.pending
		if q.phase != running { // it finds what is in the prefix tree
			at = min(max(q.Cached, q.reached/backend.BlockSize*backend.BlockSize), len(q.Tokens)-1)
		}
		dst = append(dst, Ahead{Client: q.Client, At: at, Left: known - at, Answer: q.MaxLen - known,
			Sent: max(len(q.Tokens)-q.Prompt, 0), Reading: at < q.Prompt, Promised: q.Promised,
			Runs: q.phase != waiting, Ran: at - q.reached,
			Had: max(q.client.due.had-s.now, 0), Rows: int(int64(q.client.had - s.clock))}) //nolint:gosec // near each other
	}
	return dst
}

// Resume has a sequence that was just submitted, whose first position is a.At, stand with others as a says.
func (s *State) Resume(q *Seq, a *Ahead) {
	q.client.due.had = a.Had
	q.client.had = s.clock + uint64(int64(a.Rows)) //nolint:gosec // the sum is positive: see begun
	if q.reached = -a.Ran; a.Runs {
		q.reached += a.At / 4 // by which its stint is longer
	}
}

// Reset forgets all progress, because the KV cache is gone. Steps in flight count for nothing, and masks that were
// asked for are due again. Every living sequence waits, in its old order, and will be recomputed from its tokens.
func (s *State) Reset() {
	s.flying, s.crowded = 0, false
	for _, c := range s.clients {
		c.due.unpaid = 0
	}
	for _, q := range slices.Clone(s.seqs) {
		if q.phase != ended {
			s.move(q, waiting)
		}
		q.kv, q.tables, q.done = kvState{}, q.tables[:0], 0
		q.planned, q.flying, q.pending = 0, 0, 0
		if q.mask == asked {
			q.mask = due
		}
		if q.phase == ended {
			s.forget(q)
		}
	}
}

// end takes the sequence out of the running set; it is forgotten once its blocks are given back.
func (s *State) end(q *Seq) {
	if s.byID[q.ID] != q {
		return // forgotten already: a step that failed may still name it
	}
	s.move(q, ended)
	if q.Promised {
		s.promise()
	}
	if !q.kv.open && !q.kv.asked {
		s.forget(q)
	}
}

func (s *State) forget(q *Seq) {
	s.counts[q.phase]--
	delete(s.byID, q.ID)
	s.seqs = slices.DeleteFunc(s.seqs, func(p *Seq) bool { return p == q })
	s.leave(q)
}
