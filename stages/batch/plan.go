package batch

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Part is one sequence's share of a step.
type Part struct {
	Seq      *Seq
	Rows     int
	Proposed int // the last ones of Rows: proposed tokens, which may turn out wrong
	Again    int // the first ones of Rows: tokens that were accepted before, and left no recurrent state
	Wanted   int // how many of the step's wanted rows are this part's; where it proposes tokens, Proposed+1
}

// gives is the number of tokens, or chunks of a score, that the part gives its sequence at most.
func (p Part) gives() int {
	if p.Seq.Score {
		return min(p.Wanted, 1)
	}
	return p.Wanted
}

// Budget is the size that a step should have; Plan keeps to it roughly.
type Budget struct {
	Rows  int
	Alone int // if it has one sequence only; not less than Rows
	Fixed int // a step's fixed cost (reading the weights, and the like), as the number of rows that would take as long
}

// Plan fills one step, and counts it as in flight until its parts come back by Advance, Drop or Strike; steps come
// back in the order of their plans. A sequence has no phase of its own here: len(Tokens) positions are known, some
// of them are computed or in flight, and it wants the rest; prefill, decode and recompute are this one rule. Decodes
// come first, prefill fills what is left: that of the client that has had least first, and within a client by
// arrival. With one client, no decode is left out however small the budget, and prefill gets leastBeside rows beside
// decodes: else the sequences that came last would stand still. With several clients, share bounds both. Without
// decodes the first prefill of a client that is alone may fill the step, since such a step can be given up when its
// sequence is cancelled, and nobody waits for its next token. A sequence whose step failed before runs alone, so
// that a second failure is known to be its own. The slices of step and parts are reused.
//
// Where rows of prompts and of answers are apart, steps of the two take turns: then a decode waits for one step of
// prompts, as long as the prefill beside it would have been.
//
// hopeless is a sequence that can never run for want of KV blocks; the caller ends it.
func (s *State) Plan(step *backend.Step, parts []Part, b Budget) (_ []Part, hopeless *Seq) {
	if s.limits.Whole { // what does not fit a smaller step would wait for ever
		b = Budget{Rows: s.limits.Rows, Alone: s.limits.Rows}
	}
	p := planner{s: s, step: step, parts: parts[:0], rows: s.limits.Rows, wanted: s.limits.Wanted}
	step.Tokens, step.Spans, step.Wanted = step.Tokens[:0], step.Spans[:0], step.Wanted[:0]
	if q := s.suspect(); q != nil {
		step.Prompt = s.limits.Apart && q.reading()
		if s.flying == q.flying { // else other sequences are in flight
			p.rows = min(p.rows, b.Alone)
			p.add(q)
		}
		return p.end(), nil
	}
	if s.holds() {
		return p.end(), nil
	}
	several := s.demand(b.Fixed) > 1
	clients := s.owing()
	step.Prompt = s.limits.Apart && s.prompts()
	most, answers := math.MaxInt, math.MaxInt // with one client: no bound
	if clients > 1 && !s.limits.Whole {
		most, answers = s.share(clients, b.Fixed)
	}
	decodes := p.answers(answers, b)
	rows, first := b.Rows, !decodes
	switch {
	case decodes:
		rows = min(max(rows-len(step.Tokens), leastBeside), max(most-len(step.Tokens), 1), s.limits.Beside)
		p.rows = min(p.rows, rows)
	case several:
		p.rows, first = min(p.rows, rows, most), false
	default:
		p.rows = min(p.rows, b.Alone)
	}
	if slices.ContainsFunc(p.parts, func(p Part) bool { return p.Seq.kept }) {
		p.rows = min(p.rows, max(leastBeside, b.Fixed-len(step.Tokens)))
	}
	for _, q := range s.promises.kept {
		if q.phase == running && !s.decoding(q) {
			p.add(q)
		}
	}
	s.browse()
	for q := s.nextRow(); q != nil; q = s.nextRow() {
		if !s.decoding(q) && !s.out(q) && !q.kept {
			p.add(q)
		}
		if first && len(p.parts) > 0 { // what follows would make it a step of several
			p.rows, first = min(p.rows, max(0, rows-p.parts[0].Rows)), false
		}
	}
	if len(p.parts) == 0 && s.flying == 0 {
		hopeless = s.relieve()
	}
	return p.end(), hopeless
}

// leastBeside is how many prefill rows a step takes beside however many decodes, as far as its limits allow.
const leastBeside = 16

// promise lists anew the sequences that those which came later do not hold up, by arrival: of each client the first one
// that was promised something, so that no client gets ahead of others with more than one at a time. It is called when
// such a sequence comes or ends.
func (s *State) promise() {
	s.promises.kept = s.promises.kept[:0]
	for _, c := range s.clients {
		c.due.keeps = false
	}
	for _, q := range s.seqs {
		if q.kept = q.Promised && q.phase != ended && !q.client.due.keeps; q.kept {
			q.client.due.keeps = true
			s.promises.kept = append(s.promises.kept, q)
		}
	}
}

// suspect returns the oldest sequence that is ready, or in flight, and was in a failed step.
func (s *State) suspect() *Seq {
	for _, q := range s.seqs {
		if q.strikes > 0 && (q.flying > 0 || s.ready(q)) {
			return q
		}
	}
	return nil
}

// ready says that the sequence could be given a row.
func (s *State) ready(q *Seq) bool {
	return q.phase == running && q.kv.open && q.able() && min(s.left(q), q.room()-q.planned) > 0
}

// prompts says whether the next step is of prompts, where it cannot be of both.
func (s *State) prompts() bool {
	reading, answering := false, false
	for _, q := range s.seqs {
		if s.ready(q) && !s.out(q) {
			reading, answering = reading || q.reading(), answering || !q.reading()
		}
	}
	return reading && (!answering || !s.read)
}

type planner struct {
	s      *State
	step   *backend.Step
	parts  []Part
	rows   int
	wanted int
	spare  int // rows that are left for proposed tokens
}

// answers adds decodes of at most so much weight. It says whether any sequence decodes, in this step or in one in
// flight: the next token of such a sequence waits for this step. A client's first sequence that is left out comes first
// in the next step. Proposed tokens get only rows that no decode wants.
func (p *planner) answers(most int, b Budget) (any bool) {
	rows, weight := p.s.answers()
	p.spare = min(min(b.Rows, p.rows)-rows, most-weight, p.wanted-p.s.Running())
	for _, q := range p.s.promises.kept {
		if q.phase == running && p.s.decoding(q) {
			p.add(q)
		}
	}
	t := p.turns(most, b.Fixed)
	p.s.resume()
	for q := p.s.nextRow(); q != nil; q = p.s.nextRow() {
		switch {
		case !p.s.decoding(q) || q.kept:
		case t.add(p, q):
		case !q.client.cut:
			q.client.cut, q.client.from = true, q.arrival
		}
	}
	t.end(p.s)
	for _, q := range p.s.seqs {
		any = any || q.pending > 0 && !q.Score || p.others(q) && p.s.ready(q) && p.s.decoding(q)
	}
	return any
}

// others says whether the sequence's next row is not of the kind (prompt or answer) that the step has.
func (p *planner) others(q *Seq) bool { return p.s.limits.Apart && q.reading() != p.step.Prompt }

func (p *planner) add(q *Seq) {
	if !p.s.ready(q) || p.others(q) {
		return
	}
	left := p.s.left(q)
	n := min(left, q.room()-q.planned, p.rows)
	if p.step.Prompt {
		n = min(n, q.Prompt-q.planned) // what follows is of an answer, and is recomputed in a step of answers
	}
	most := min(left, q.room()-q.planned, p.s.limits.Rows-len(p.step.Tokens))
	if q.Score {
		n, most = min(n, p.wanted), min(most, p.wanted)
	}
	n = q.whole(q.planned, n, most)
	want := 0
	if q.Score {
		want = n
	} else if n == left {
		want = 1
	}
	if n <= 0 || want > p.wanted || n < left && p.s.limits.Whole {
		return
	}
	row := len(p.step.Tokens)
	if q.pending > 0 && !q.Score {
		p.step.Tokens = append(p.step.Tokens, backend.DrawOf(q.drew.index))
	} else {
		p.step.Tokens = append(p.step.Tokens, q.Tokens[q.planned:q.planned+n]...)
	}
	proposed, again := 0, 0
	if want > 0 && p.s.decoding(q) && !q.reading() {
		again = n - 1
	}
	if q.Proposer != nil && want > 0 && p.s.decoding(q) {
		proposed = p.propose(q, n)
		n, want = n+proposed, want+proposed
	}
	p.span(q, row, n, proposed)
	if want > 0 {
		q.drew = draw{p.s.steps + 1, len(p.step.Wanted)}
	}
	for i := n - want; i < n; i++ {
		p.step.Wanted = append(p.step.Wanted, int32(row+i))
	}
	part := Part{Seq: q, Rows: n, Proposed: proposed, Again: again, Wanted: want}
	p.parts = append(p.parts, part)
	if !part.Answers() {
		q.client.due.unpaid++
	}
	q.pending += part.gives()
	p.s.charge(q.client, n)
	q.planned += n
	q.flying++
	p.rows -= n
	p.wanted -= want
}

// span adds the span of n rows to the step. The tables are copied: the sequence's own change while the step runs.
func (p *planner) span(q *Seq, row, n, proposed int) {
	i := len(p.step.Spans)
	p.step.Spans = slices.Grow(p.step.Spans, 1)[:i+1]
	s := &p.step.Spans[i]
	places, sees := s.Places, s.Sees
	*s = backend.Span{Row: row, Rows: n, Proposed: proposed, Pos: q.planned, Tables: append(s.Tables[:0], q.tables...),
		Adapters: q.Adapters, Heard: q.Heard}
	if q.Axes && len(q.Pictures) > 0 {
		s.Places = places[:0]
		for i := range n {
			s.Places = append(s.Places, q.Place(q.planned+i))
		}
	}
	if q.both(q.planned, n) {
		s.Sees = sees[:0]
		for i := range n {
			s.Sees = append(s.Sees, q.sees(q.planned+i))
		}
	}
}

// end counts what was planned as in flight.
func (p *planner) end() []Part {
	p.s.flying += len(p.parts)
	if len(p.parts) > 0 {
		p.s.read = p.step.Prompt
		p.s.steps++
	}
	return p.parts
}

// Advance records that the rows of a part were computed, and how many of its proposed tokens were accepted: the
// caller then appends these, and the token that was drawn after them. Rows of the others count as never planned. So
// do rows of accepted tokens if sequences have recurrent states (Limits.Redo): they left none, and are computed
// again before the next token. Strikes are cleared only when the position of the failure has been passed: a restart
// of the device begins again at position 0, which may be many steps before it.
func (s *State) Advance(p Part, accepted int) {
	s.back(p)
	if s.limits.Redo > 0 {
		accepted = 0
	}
	p.Seq.done += p.Rows - p.Proposed + accepted
	p.Seq.planned -= p.Proposed - accepted
	if p.Seq.done >= p.Seq.failed {
		p.Seq.strikes, p.Seq.failed = 0, 0
	}
}

// Drop records that a step with these parts came back uncomputed, because all its sequences have ended.
func (s *State) Drop(parts []Part) {
	for _, p := range parts {
		s.back(p)
	}
}

// back takes a part out of flight.
func (s *State) back(p Part) {
	s.flying--
	if !p.Answers() {
		p.Seq.client.due.unpaid--
	}
	p.Seq.flying--
	p.Seq.pending -= p.gives()
}

// Append adds the token sampled after the sequence's last position and says whether the sequence ended by it.
func (s *State) Append(q *Seq, token int32) End {
	q.Tokens = append(q.Tokens, token)
	switch {
	case s.limits.Apart:
		q.text = append(q.text, answered(token))
	case q.text != nil:
		q.text = append(q.text, token)
	}
	q.sent++
	end := q.endOf(len(q.Tokens), token)
	switch {
	case end == NotEnded:
	case q.Follows:
		q.rests = true
	default:
		s.end(q)
	}
	return end
}

// Scored records that a chunk of a score was delivered, and says whether the sequence ended by it.
func (s *State) Scored(q *Seq) End {
	q.sent++
	if q.done < len(q.Tokens) {
		return NotEnded
	}
	s.end(q)
	return EndLength
}

// Finish ends a sequence that is complete or cannot go on.
func (s *State) Finish(q *Seq) { s.end(q) }

// Strike records that the oldest step in flight failed, and with it those that were planned after it; parts are
// those of all these steps, in order. Their sequences go on from what was computed before, or from the last multiple
// of Limits.Redo in it. It returns the sequence to be given up: one that failed alone after it had failed before;
// nil: none.
func (s *State) Strike(parts []Part) *Seq {
	for _, p := range parts {
		q := p.Seq
		s.back(p)
		q.failed = max(q.failed, q.planned)
		if q.flying == 0 {
			q.strikes++
			q.done -= q.done % max(s.limits.Redo, 1) // the recurrent state after it may be half overwritten by the step
			q.planned = q.done
		}
	}
	for _, p := range parts {
		if p.Seq != parts[0].Seq || p.Seq.strikes < 2 {
			return nil
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return parts[0].Seq
}
