package batch

import (
	"math"
	"slices"
)

// client is whoever asked for sequences, with its share: the places that they hold, and the rows that they have had.
// What is scarce goes to the client that has least of it, whatever number of sequences it asks for. A client is
// forgotten with its last sequence.
type client struct {
	name     string
	seqs     []*Seq // by arrival
	held     int    // places, those of sequences that are entering included
	entering int
	had      uint64 // rows by the clock of rows: State.clock
	turn     uint64 // when the newest of its masks was asked for
	from     uint64 // arrival of the sequence whose answer goes on first

	// Of one walk through all clients.
	at, left int // where it is in seqs, and how many follow
	wants    int // rows
	answers  int // of wants, those of answers
	rows     int // in this step
	given    int // places that it is to get
	cut      bool
}

// enroll finds the sequence's client, or takes it in. A new one has had as much as whoever had least of late: it is not
// given what others had before it came, and its first mask goes before the one of whoever had one last.
func (s *State) enroll(q *Seq) {
	i := slices.IndexFunc(s.clients, func(c *client) bool { return c.name == q.Client })
	if i < 0 {
		i = len(s.clients)
		s.clients = append(s.clients, &client{name: q.Client, had: s.clock, turn: max(s.masks, 1) - 1})
	}
	q.client, q.turn = s.clients[i], s.masks
	q.client.seqs = append(q.client.seqs, q)
}

// leave forgets a sequence of a client.
func (s *State) leave(q *Seq) {
	c := q.client
	if c.seqs = slices.DeleteFunc(c.seqs, func(p *Seq) bool { return p == q }); len(c.seqs) == 0 {
		s.clients = slices.DeleteFunc(s.clients, func(d *client) bool { return d == c })
	}
}

// count adds n sequences of a phase.
func (c *client) count(p phase, n int) {
	if p == entering || p == running {
		c.held += n
	}
	if p == entering {
		c.entering += n
	}
}

// charge counts rows that a client gets. The clock shows what the client has had that was served last, and never goes
// back: who wants less than its share saves nothing for later.
func (s *State) charge(c *client, rows int) {
	s.clock = max(s.clock, c.had)
	c.had = s.clock + uint64(rows)
	c.rows += rows
}

// nextIn returns the waiting sequence that is to have the next place, after those that it returned since rewind: of the
// client that holds fewest, else of the one that has had least; of a client, in order of arrival. Only those are
// passed over whose clients do not read, or whose masks are being found.
func (s *State) nextIn() *Seq {
	var best *client
	for _, c := range s.clients {
		for c.left > 0 && !(c.seqs[c.at].phase == waiting && c.seqs[c.at].able()) {
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
	for _, c := range s.clients {
		c.at, c.left, c.given, c.cut = 0, len(c.seqs), 0, false
	}
}

// resume begins a walk by nextRow in which each client goes on where it was cut in the one before.
func (s *State) resume() {
	s.rewind()
	for _, c := range s.clients {
		if c.from > 0 {
			c.at = max(0, slices.IndexFunc(c.seqs, func(q *Seq) bool { return q.arrival >= c.from }))
			c.from = 0
		}
	}
}

// nextRow returns the running sequence that is to have rows next, each once: of the client that has fewest in this
// step, else of the one that has had least.
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

// demand counts the clients that want rows now, or once what is in flight is back, and how many each of them wants.
func (s *State) demand() (clients int) {
	for _, c := range s.clients {
		c.wants, c.answers, c.rows = 0, 0, 0
		if c.held == 0 {
			continue
		}
		for _, q := range c.seqs {
			switch {
			case q.phase != running:
			case q.pending > 0 || s.ready(q) && s.decoding(q):
				n := max(s.left(q), 1)
				c.wants, c.answers = c.wants+n, c.answers+n
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

// answers is how many rows of answers all clients want, as demand counted them.
func (s *State) answers() (n int) {
	for _, c := range s.clients {
		n += c.answers
	}
	return n
}

// share is how many rows a step may have that so many clients share, and how many of these may be of answers. With them
// it takes at most as many times as long as a step would of the client alone that wants fewest rows. So nobody's
// answers take longer than with an equal share of the device, whatever others send, and rows that cost next to nothing
// are left out for nobody. A client that only reads its prompts has the fewest of the rows for them; where all clients
// have answers, a quarter is for the prompts that some read besides.
func (s *State) share(clients, fixed int) (rows, answers int) {
	fewest, reading, more := math.MaxInt, 0, false
	for _, c := range s.clients {
		if c.wants > 0 {
			fewest = min(fewest, c.wants)
			more = more || c.wants > c.answers
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

// places is how many are free.
func (s *State) places() int { return s.limits.Seqs - s.Running() - s.counts[entering] }

// Share has a sequence give its place up where a client waits that has less than its share: then the next request to
// the KV owner frees its blocks, and it waits again, to be computed from its tokens. It is called before NextKV. One at
// a time gives way: what it frees may be enough.
func (s *State) Share() {
	if len(s.clients) < 2 {
		return
	}
	for _, q := range s.seqs {
		if q.phase == entering || q.phase != running && q.kv.open {
			return
		}
	}
	if c := s.deprived(); c != nil {
		if q := s.yields(c); q != nil {
			s.move(q, waiting)
		}
	}
}

// deprived is the client that waits in vain for a place, or for blocks, and is next to get some.
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

// yields is the sequence that gives way to a client: one of whoever holds most places, if that is more than the client
// would then hold. Where all have one place, those that have none take turns with those that have had theirs for long.
func (s *State) yields(to *client) (q *Seq) {
	if rich := s.richest(); rich.held > to.held+1 {
		return rich.youngest()
	}
	if to.held > 0 {
		return nil
	}
	for _, p := range s.seqs {
		if p.phase == running && p.client != to && p.ran() >= p.stint() && (q == nil || p.ran() > q.ran()) {
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

// youngest is the client's sequence that gives way first: one that nobody reads, else the one that came last; nil if
// none runs.
func (c *client) youngest() (q *Seq) {
	for _, p := range c.seqs {
		if p.phase == running && (q == nil || q.credit() || q.Score || !p.credit() && !p.Score) {
			q = p
		}
	}
	return q
}

// leastStint is how many positions a sequence advances before its place goes to a client that has none.
const leastStint = 64

// stint is how many it is for one that has come so far: what may have to be computed again must be worth it.
func (q *Seq) stint() int { return leastStint + q.done/4 }

// ran is how many positions it has come further in the place that it holds than it had before.
func (q *Seq) ran() int { return q.done - q.reached }
