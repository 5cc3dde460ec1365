package batch

import (
	"math"
	"slices"
)

// client is one client of the scheduler (Terms.Client), with what its sequences use: places among the running ones,
// and rows of steps. Both go to the client that has fewest, however many sequences it asks for. A client is
// forgotten with its last sequence, or once it owes no time: see settled.
type client struct {
	name     string
	seqs     []*Seq // by arrival
	held     int    // places of its running and entering sequences
	entering int    // of held, those of entering sequences
	had      uint64 // rows that it was given, by State.clock: see charge
	turn     uint64 // State.masks when its newest mask was asked for
	from     uint64 // arrival of the first sequence whose decode the last step left out; 0: none
	due      dues   // the device's time that it has had

	// What follows belongs to one walk through all clients, by nextIn or nextRow.
	at, left int  // index in seqs, and how many sequences are still to be looked at
	wants    int  // rows that it could use: see demand
	answers  int  // of wants, rows of decodes
	rows     int  // in this step
	given    int  // places that the walk gave it
	cut      bool // a decode of it was left out of this step
}

// enroll adds a sequence to its client, which it creates if there is none of that name. A new client begins at the
// clock, not at 0: it does not get what others had before it came. Its first mask goes before that of the client
// that had one last, and before no other.
func (s *State) enroll(q *Seq) {
	i := slices.IndexFunc(s.clients, func(c *client) bool { return c.name == q.Client })
	if i < 0 {
		i = len(s.clients)
		s.clients = append(s.clients, &client{name: q.Client, had: s.clock, turn: max(s.masks, 1) - 1,
			due: dues{had: s.now}})
	}
	q.client, q.turn = s.clients[i], s.masks
	q.client.seqs = append(q.client.seqs, q)
}

// leave removes a sequence from its client, and the client with its last sequence.
func (s *State) leave(q *Seq) {
	c := q.client
	if c.seqs = slices.DeleteFunc(c.seqs, func(p *Seq) bool { return p == q }); len(c.seqs) == 0 {
		s.settled()
	}
}

// count adds n to the places that the client holds, if sequences of the phase hold places.
func (c *client) count(p phase, n int) {
	if p == entering || p == running {
		c.held += n
	}
	if p == entering {
		c.entering += n
	}
}

// charge counts rows that a client is given. State.clock is what the client had had that was served last, and never
// falls; a client that lags behind is brought up to it first. So a client that wants less than its share saves
// nothing for later.
func (s *State) charge(c *client, rows int) {
	s.clock = max(s.clock, c.had)
	c.had = s.clock + uint64(rows)
	c.rows += rows
}

// nextIn returns the waiting sequence that gets the next place, after those that it returned since rewind; nil: none.
// Promised ones come first, by arrival. Else it takes the client that holds fewest places (of equals, the one that has
// had fewest rows), and its first sequence by arrival. It passes over sequences whose sessions do not read, or whose
// masks are still to be found.
func (s *State) nextIn() *Seq {
	for _, q := range s.promises.kept {
		if q.phase == waiting && q.able() && q.walk != s.promises.walk {
			q.walk = s.promises.walk
			q.client.given++
			return q
		}
	}
	var best *client
	for _, c := range s.clients {
		for c.left > 0 && (c.seqs[c.at].kept || !(c.seqs[c.at].phase == waiting && c.seqs[c.at].able())) {
			c.at, c.left = c.at+1, c.left-1
		}
		if c.left > 0 && (best == nil || c.held+c.given < best.held+best.given ||
			c.held+c.given == best.held+best.given && c.had < best.had) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	best.at, best.left, best.given = best.at+1, best.left-1, best.given+1
	return best.seqs[best.at-1]
}

// rewind begins a walk by nextIn, or by nextRow.
func (s *State) rewind() {
	s.promises.walk++
	for _, c := range s.clients {
		c.at, c.left, c.given, c.cut = 0, len(c.seqs), 0, false
	}
}

// browse begins a walk by nextRow through the sequences of those clients that have prompts to read: see owing.
func (s *State) browse() {
	s.rewind()
	for _, c := range s.clients {
		if !c.due.reads {
			c.left = 0
		}
	}
}

// resume begins a walk by nextRow in which each client starts with the sequence that the step before left out first.
func (s *State) resume() {
	s.rewind()
	for _, c := range s.clients {
		if c.from > 0 {
			c.at = max(0, slices.IndexFunc(c.seqs, func(q *Seq) bool { return q.arrival >= c.from }))
			c.from = 0
		}
	}
}

// nextRow returns the running sequence that gets rows next, each one once; nil: none is left. It takes the client
// that has fewest rows in this step; of equals, the one that has had fewest before.
func (s *State) nextRow() *Seq {
	var best *client
	for _, c := range s.clients {
		for c.left > 0 && c.seqs[c.at%len(c.seqs)].phase != running {
			c.at, c.left = c.at+1, c.left-1
		}
		if c.left > 0 && (best == nil || c.rows < best.rows || c.rows == best.rows && c.had < best.had) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	best.at, best.left = best.at+1, best.left-1
	return best.seqs[(best.at-1)%len(best.seqs)]
}

// demand sets wants, answers and weight of all clients: the rows that they could use now, or once the steps in flight
// are back. It returns how many clients want any. fixed is Budget.Fixed.
func (s *State) demand(fixed int) (clients int) {
	for _, c := range s.clients {
		c.wants, c.answers, c.due.weight, c.rows = 0, 0, 0, 0
		if c.held == 0 {
			continue
		}
		for _, q := range c.seqs {
			switch {
			case q.phase != running:
			case q.pending > 0 || s.ready(q) && s.decoding(q):
				n := max(s.left(q), 1)
				c.wants, c.answers, c.due.weight = c.wants+n, c.answers+n, c.due.weight+n*s.weigh(q, fixed)
			case s.ready(q):
				c.wants += s.left(q)
			}
		}
		if c.wants > 0 {
			clients++
		}
	}
	return clients
}

// answers is the number of decode rows that all clients want, and their weight, as demand counted them.
func (s *State) answers() (rows, weight int) {
	for _, c := range s.clients {
		rows, weight = rows+c.answers, weight+c.due.weight
	}
	return rows, weight
}

// share bounds the rows of a step that several clients share, and of these the weight of decodes. fixed is
// Budget.Fixed. With so many rows the step takes at most clients times as long as a step of the least demanding
// client alone. So no client's decodes are slower than with an equal share of the device, whatever the others send,
// and while the fixed cost is most of a step, hardly a row is left out. For each client that only prefills, as many
// rows are kept as the least demanding client wants; where all clients decode and some have prompts too, a quarter
// is kept for prompts.
func (s *State) share(clients, fixed int) (rows, answers int) {
	fewest, reading, more := math.MaxInt, 0, false
	for _, c := range s.clients {
		if c.wants > 0 {
			fewest = min(fewest, c.wants-c.answers+c.due.weight)
			more = more || c.due.reads && c.answers > 0
		}
		if c.wants > 0 && c.answers == 0 {
			reading++
		}
	}
	rows = clients*(fixed+fewest) - fixed
	answers = rows - reading*fewest
	if reading == 0 && more {
		answers -= max(rows/4, 1)
	}
	return rows, max(answers, clients-reading)
}

// places is the number of free places.
func (s *State) places() int { return s.limits.Seqs - s.Running() - s.counts[entering] }

// Share preempts one running sequence if a client waits that holds less than its share. The sequence waits again:
// the next request to the KV owner frees its blocks, and it is recomputed from its tokens later. Share is called
// before NextKV, and preempts one sequence at a time, since the blocks that this frees may be enough.
func (s *State) Share() {
	if len(s.clients) < 2 && len(s.promises.kept) == 0 {
		return
	}
	for _, q := range s.seqs {
		if q.phase == entering || q.phase != running && q.kv.open {
			return
		}
	}
	if q := s.giveWay(); q != nil {
		s.move(q, waiting)
		return
	}
	if c := s.deprived(); c != nil {
		if q := s.yields(c); q != nil {
			s.move(q, waiting)
		}
	}
}

// giveWay returns the sequence that is preempted for a promised one that has no place: the one that came last of those
// that are not promised themselves; nil: none.
func (s *State) giveWay() (q *Seq) {
	waits := slices.ContainsFunc(s.promises.kept, func(p *Seq) bool { return p.phase == waiting && p.able() })
	if !waits || s.places() > 0 {
		return nil
	}
	for _, p := range s.seqs {
		if p.phase == running && !p.kept {
			q = p
		}
	}
	return q
}

// deprived returns the client that is next to get a place, or blocks, while there are none; nil: no client waits for
// any.
func (s *State) deprived() (poor *client) {
	s.rewind()
	if q := s.nextIn(); q != nil && (s.places() <= 0 || q.kv.refused) {
		poor = q.client
	}
	for _, q := range s.seqs {
		if q.phase == running && q.kv.refused && q.able() && (poor == nil || q.client.held < poor.held) {
			poor = q.client
		}
	}
	return poor
}

// yields returns the sequence that is preempted for a client: one of the client that holds most places, if it still
// holds at least as many as the other then. Else, for a client that has no place, it is the sequence that has run
// longest, and at least its stint: clients take turns. nil: none.
func (s *State) yields(to *client) (q *Seq) {
	if rich := s.richest(); rich.held > to.held+1 {
		if q = rich.youngest(); q.kept {
			return nil
		}
		return q
	}
	if to.held > 0 {
		return nil
	}
	for _, p := range s.seqs {
		if p.phase == running && p.client != to && !p.kept && p.ran() >= p.stint() && (q == nil || p.ran() > q.ran()) {
			q = p
		}
	}
	return q
}

// richest is the client that holds most places; of several, the one that has had most. There is a client.
func (s *State) richest() *client {
	return slices.MaxFunc(s.clients, func(a, b *client) int {
		if a.held != b.held {
			return a.held - b.held
		}
		return int(int64(a.had - b.had)) //nolint:gosec // clocks that are near each other
	})
}

// youngest returns the client's running sequence that is preempted first: one whose session does not read, else the
// one that arrived last; nil: none runs.
func (c *client) youngest() (q *Seq) {
	for _, p := range c.seqs {
		if p.phase == running && (q == nil || q.credit() || q.Score || !p.credit() && !p.Score) {
			q = p
		}
	}
	return q
}

// leastStint is the number of positions that a sequence advances at least before its place goes to a client that has
// none.
const leastStint = 64

// stint is that number for this sequence: more the longer it is, since all of it may have to be recomputed.
func (q *Seq) stint() int { return leastStint + q.done/4 }

// ran is the number of positions computed since the sequence got its place, beyond those that it had reached before.
func (q *Seq) ran() int { return q.done - q.reached }
