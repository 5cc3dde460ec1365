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
	Proposed int // of Rows, the last ones: of tokens that the sequence may turn out to have
	Again    int // of Rows, the first ones: of tokens that were accepted and left no state
	Wanted   int // how many of the step's wanted rows are this part's: where it proposes, one more than that
}

// gives is the number of tokens that the part gives its sequence at most, or of chunks of a score.
func (p Part) gives() int {
	if p.Seq.Score {
		return min(p.Wanted, 1)
	}
	return p.Wanted
}

// Budget is about how many rows a step should have.
type Budget struct {
	Rows  int
	Alone int // if it has one sequence only; not less than Rows
	Fixed int // rows that would take as long as a step does that has none: to read the weights, and the like
}

// Plan fills one step, and counts it as in flight until its parts come back by Advance, Drop or Strike; steps come back
// in the order of their plans. A sequence has no phase of its own here: len(Tokens) positions are known, some of them
// are computed or in flight, and it wants the rest; prefill, decode and recompute are this one rule.
// Decodes come first, prefill fills what is left: the client that has had least of it first, and of a client in order
// of arrival. However few rows are asked for, no decode of a client alone is left out, and prefill gets leastBeside
// beside them: else those that came last would stand still. Of several clients, decodes and prefill are as many as
// share says. Without decodes the first prefill of a client alone may fill the step, since such a step can be given up
// when its sequence is cancelled, and nobody waits for its next token. A sequence whose step failed before runs alone,
// so that a second failure is known to be its own. The slices of step and parts are reused.
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
	step.Prompt = s.limits.Apart && s.prompts()
	if q := s.suspect(); q != nil {
		step.Prompt = s.limits.Apart && q.reading()
		if s.flying == q.flying { // else others are in flight
			p.rows = min(p.rows, b.Alone)
			p.add(q)
		}
		return p.end(), nil
	}
	clients := s.demand()
	most, answers := math.MaxInt, math.MaxInt // of a client alone
	if clients > 1 && !s.limits.Whole {
		most, answers = s.share(clients, b.Fixed)
	}
	decodes := p.answers(answers, b)
	rows, first := b.Rows, !decodes
	switch {
	case decodes:
		rows = min(max(rows-len(step.Tokens), leastBeside), max(most-len(step.Tokens), 1), s.limits.Beside)
		p.rows = min(p.rows, rows)
	case clients > 1:
		p.rows, first = min(p.rows, rows, most), false
	default:
		p.rows = min(p.rows, b.Alone)
	}
	s.rewind()
	for q := s.nextRow(); q != nil; q = s.nextRow() {
		if !s.decoding(q) {
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
		if s.ready(q) {
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
	spare  int // rows of proposed tokens that it may have yet
}

// answers adds decodes, and says whether there are any, in this step or in those in flight: their next row has to wait
// for it. A sequence that is left out is the first of its client's in the next step. Proposed tokens have rows that
// nobody else would.
func (p *planner) answers(most int, b Budget) (any bool) {
	p.spare = min(min(b.Rows, most, p.rows)-p.s.answers(), p.wanted-p.s.Running())
	p.s.resume()
	for q := p.s.nextRow(); q != nil; q = p.s.nextRow() {
		switch {
		case !p.s.decoding(q):
		case len(p.parts) < most:
			p.add(q)
		case !q.client.cut:
			q.client.cut, q.client.from = true, q.arrival
		}
	}
	for _, q := range p.s.seqs {
		any = any || q.pending > 0 && !q.Score || p.others(q) && p.s.ready(q) && p.s.decoding(q)
	}
	return any
}

// others says that the sequence's next row is not of the kind that the step has.
func (p *planner) others(q *Seq) bool { return p.s.limits.Apart && q.reading() != p.step.Prompt }

func (p *planner) add(q *Seq) {
	if !p.s.ready(q) || p.others(q) {
		return
	}
	left := p.s.left(q)
	n := min(left, q.room()-q.planned, p.rows)
	if p.step.Prompt {
		n = min(n, q.Prompt-q.planned) // what follows is an answer's that is computed again
	}
	want := 0
	if q.Score {
		n = min(n, p.wanted)
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
	q.pending += part.gives()
	p.s.charge(q.client, n)
	q.planned += n
	q.flying++
	p.rows -= n
	p.wanted -= want
}

// span adds the rows' place in the sequence. The tables are copied: the sequence's own change while the step runs.
func (p *planner) span(q *Seq, row, n, proposed int) {
	i := len(p.step.Spans)
	p.step.Spans = slices.Grow(p.step.Spans, 1)[:i+1]
	s := &p.step.Spans[i]
	*s = backend.Span{Row: row, Rows: n, Proposed: proposed, Pos: q.planned, Tables: append(s.Tables[:0], q.tables...)}
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

// Advance tells that the rows of a part were computed, and how many of its proposed tokens were accepted: these are
// appended next, and the one that was drawn after them. The rows behind them count as never planned. Where sequences
// have states, so do the accepted ones: they left none, and are computed once more before the next token. What failed
// before is forgiven only when it has been passed: a restart of the device begins again at position 0, which may be
// many steps before the failure.
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

// Drop tells that a step with these parts came back without having been computed, because all its sequences have ended.
func (s *State) Drop(parts []Part) {
	for _, p := range parts {
		s.back(p)
	}
}

// back takes a part out of flight.
func (s *State) back(p Part) {
	s.flying--
	p.Seq.flying--
	p.Seq.pending -= p.gives()
}

// Append adds the token sampled after the sequence's last position and says whether the sequence ended by it.
func (s *State) Append(q *Seq, token int32) End {
	q.Tokens = append(q.Tokens, token)
	if s.limits.Apart {
		q.text = append(q.text, answered(token))
	}
	q.sent++
	end := q.endOf(len(q.Tokens), token)
	if end != NotEnded {
		s.end(q)
	}
	return end
}

// Scored tells that a chunk of rows is delivered and says whether it was the last.
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

// Strike notes that the oldest step in flight failed, and those after it with it. parts are those of all of them, in
// order. Their sequences go on from what was computed before, as far as Limits.Redo lets them. It returns the
// sequence to be given up: one that failed alone after it had failed before.
func (s *State) Strike(parts []Part) *Seq {
	for _, p := range parts {
		q := p.Seq
		s.back(p)
		q.failed = max(q.failed, q.planned)
		if q.flying == 0 {
			q.strikes++
			q.done -= q.done % max(s.limits.Redo, 1) // what it keeps of a state may be half the step's
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
