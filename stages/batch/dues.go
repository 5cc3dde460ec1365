package batch

import (
	"math"
	"slices"
	"time"
)

// dues are a client's account of the device's time, as far as rows of prompts keep others waiting. Rows are no measure
// of that: one behind 15,000 positions may take as long as thirty steps of an answer. A client whose prompts have taken
// more time than another one has had for its answers gives no rows of prompts to steps, until the other has had as
// much. So each of them has its share of the time, whatever the rows cost.
type dues struct {
	had    time.Duration // of the device's time, by State.now
	unpaid int           // parts with rows of its prompts in steps in flight, which Took has yet to count
	reads  bool          // it has prompts to read
	out    bool          // they are left out of this step
	weight int           // of the rows of answers that it wants: see demand and weigh
	keeps  bool          // one of its sequences is kept: see promise
	rests  float64       // until its answers take another turn, in the time of reading the weights: see turns

	// What follows is of the step that Took counts.
	answers, prompts int // weight of answers, rows of prompts
}

// Answers says whether the part continues an answer, or begins it; else it has rows of a prompt.
func (p Part) Answers() bool { return p.Rows-p.Proposed-p.Again == 1 && p.Wanted > 0 }

// Answers is the number of rows of answers in a step.
func Answers(parts []Part) (rows int) {
	for _, p := range parts {
		if p.Answers() {
			rows += p.Rows
		}
	}
	return rows
}

// Took says how long a step took, before its parts come back. answers is how long it would have taken without rows of
// prompts, as far as is known; fixed is the Budget.Fixed by which it was planned. Answers cost their client what they
// would cost it without those of others: that steps are shared is everybody's gain. Of a client that also reads prompts
// they cost a quarter less, which is left for these: they would stand still beside its own answers. What the step took
// beyond its answers is divided among prompts.
func (s *State) Took(parts []Part, took, answers time.Duration, fixed int) {
	rows, prompts := 0, 0
	for _, p := range parts {
		if d := &p.Seq.client.due; p.Answers() {
			weight := p.Rows * s.weigh(p.Seq, fixed)
			rows, d.answers = rows+weight, d.answers+weight
		} else {
			prompts, d.prompts = prompts+p.Rows, d.prompts+p.Rows
		}
	}
	s.newest = max(took, 1)
	own := 0 // what is fixed is paid for by the answers, if there are any
	switch {
	case prompts == 0:
		answers = s.newest
	case rows == 0:
		answers, own = 0, fixed
	}
	answers = min(answers, s.newest)
	for _, p := range parts {
		d := &p.Seq.client.due
		if d.answers > 0 {
			cost := portion(answers, d.answers+fixed, rows+fixed)
			if d.reads {
				cost -= cost / 4
			}
			d.had += cost
		}
		if d.prompts > 0 {
			d.had += portion(s.newest-answers, d.prompts+own, prompts+own)
		}
		d.answers, d.prompts = 0, 0
	}
}

// portion is n of all parts of a time, but at least a nanosecond: who is served gets on, also while little is known.
func portion(of time.Duration, n, all int) time.Duration {
	return max(time.Duration(float64(of)*float64(n)/float64(all)), 1)
}

// owing leaves prompts out of this step if their client has had more time than another one that wants rows, and takes
// them out of wants. It is called after demand, and returns how many clients still want rows. Beside answers any time
// counts, and a prompt in flight is not paid for yet. Beside prompts, which gain by sharing steps, the newest step's
// time is allowed: so a client that comes while a long step of another one runs is next. Who has had least is left out
// only while its own prompts are in flight, so there is always a step.
//
// State.now is the least time that a client which wants rows has had, and never falls. Who has just come, or wanted
// nothing for a while, begins there: it saves nothing for later.
func (s *State) owing() (clients int) {
	least, answering, answer := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), 0
	for _, c := range s.clients {
		if c.due.reads, c.due.out = c.wants > c.answers, false; c.wants == 0 {
			continue
		}
		c.due.had = max(c.due.had, s.now)
		least = min(least, c.due.had)
		if c.answers > 0 {
			answering, answer = min(answering, c.due.had), answer+1
		}
	}
	if least < math.MaxInt64 {
		s.now = least
	}
	for _, c := range s.clients {
		if c.due.reads {
			beside := answer > 1 || answer == 1 && c.answers == 0
			c.due.out = c.due.had > answering || c.due.unpaid > 0 && beside || c.due.had-least >= s.newest && c.due.had > least
			if c.due.out = c.due.out && !c.due.keeps; c.due.out {
				c.wants = c.answers
			}
		}
		if c.wants > 0 {
			clients++
		}
	}
	s.settled()
	return clients
}

// out says that the sequence's rows are left out of this step: those of a prompt, or what is computed anew.
func (s *State) out(q *Seq) bool { return q.client.due.out && !q.kept && !s.decoding(q) }

// settled forgets the clients that have no sequence and no debt. One that goes while it has had more time than others
// is remembered until they have had as much, or are gone too: else it would come back without its debt.
func (s *State) settled() {
	s.clients = slices.DeleteFunc(s.clients, func(c *client) bool {
		return len(c.seqs) == 0 && (c.due.had <= s.now || len(s.seqs) == 0)
	})
}
