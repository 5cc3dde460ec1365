package batch

import "github.com/sluice-ai/sluice/internal/backend"

// Part is one sequence's share of a step.
type Part struct {
	Seq    *Seq
	Rows   int
	Wanted int // how many of the step's wanted rows are this part's
}

// Budget is about how many rows a step should have.
type Budget struct {
	Rows  int
	Alone int // if it has one sequence only; not less than Rows
}

// Plan fills one step. A sequence has no phase of its own here: len(Tokens) positions are
// known, done of them are computed, and it wants the rest; prefill, decode and recompute are this one rule.
// Decodes come first, prefill fills what is left, in order of arrival. However few rows are asked for, no decode is
// left out, and prefill gets leastBeside beside them: else those that came last would stand still. Without decodes
// the first prefill may fill the step alone, since such a step can be given up when its sequence is cancelled, and
// nobody waits for its next token. A sequence whose step failed before runs alone, so that a second failure is known
// to be its own. The slices of step and parts are reused.
//
// hopeless is a sequence that can never run for want of KV blocks; the caller ends it.
func (s *State) Plan(step *backend.Step, parts []Part, b Budget) (_ []Part, hopeless *Seq) {
	p := planner{step: step, parts: parts[:0], rows: s.limits.Rows, wanted: s.limits.Wanted}
	step.Tokens, step.Spans, step.Wanted = step.Tokens[:0], step.Spans[:0], step.Wanted[:0]
	if q := s.suspect(); q != nil {
		p.rows = min(p.rows, b.Alone)
		p.add(q)
		return p.parts, nil
	}
	for _, q := range s.seqs {
		if q.decoding() {
			p.add(q)
		}
	}
	rows, first := b.Rows, len(p.parts) == 0
	if first {
		p.rows = min(p.rows, b.Alone)
	} else {
		rows = min(max(rows-len(p.parts), leastBeside), s.limits.Beside)
		p.rows = min(p.rows, rows)
	}
	for _, q := range s.seqs {
		if !q.decoding() {
			p.add(q)
		}
		if first && len(p.parts) > 0 { // what follows would make it a step of several
			p.rows, first = min(p.rows, max(0, rows-p.parts[0].Rows)), false
		}
	}
	if len(p.parts) == 0 {
		hopeless = s.relieve()
	}
	return p.parts, hopeless
}

// leastBeside is how many prefill rows a step takes beside however many decodes, as far as its limits allow.
const leastBeside = 16

// suspect returns the oldest sequence that is ready and was in a failed step.
func (s *State) suspect() *Seq {
	for _, q := range s.seqs {
		if q.strikes > 0 && q.ready() {
			return q
		}
	}
	return nil
}

// ready says that the sequence could be given a row.
func (q *Seq) ready() bool {
	return q.phase == running && q.kv.open && q.credit() && min(q.left(), q.room()-q.done) > 0
}

type planner struct {
	step   *backend.Step
	parts  []Part
	rows   int
	wanted int
}

func (p *planner) add(q *Seq) {
	if !q.ready() {
		return
	}
	n := min(q.left(), q.room()-q.done, p.rows)
	want := 0
	if q.Score {
		n = min(n, p.wanted)
		want = n
	} else if n == q.left() {
		want = 1
	}
	if n <= 0 || want > p.wanted {
		return
	}
	row := len(p.step.Tokens)
	p.step.Tokens = append(p.step.Tokens, q.Tokens[q.done:q.done+n]...)
	p.step.Spans = append(p.step.Spans, backend.Span{Row: row, Rows: n, Pos: q.done, Table: q.table})
	for i := n - want; i < n; i++ {
		p.step.Wanted = append(p.step.Wanted, int32(row+i))
	}
	p.parts = append(p.parts, Part{Seq: q, Rows: n, Wanted: want})
	p.rows -= n
	p.wanted -= want
}

// Advance tells that the rows of a part were computed, without a token. What failed before is forgiven only when it
// has been passed: a restart of the device begins again at position 0, which may be many steps before the failure.
func (s *State) Advance(p Part) {
	p.Seq.done += p.Rows
	if p.Seq.done >= p.Seq.failed {
		p.Seq.strikes, p.Seq.failed = 0, 0
	}
}

// Append adds the token sampled after the sequence's last position and says whether the sequence ended by it.
func (s *State) Append(q *Seq, token int32) End {
	q.Tokens = append(q.Tokens, token)
	q.sent++
	end := NotEnded
	switch {
	case q.Ends != nil && q.Ends(token):
		end = EndToken
	case len(q.Tokens) >= q.MaxLen:
		end = EndLength
	}
	if end != NotEnded {
		s.end(q)
	}
	return end
}

// Scored tells that a chunk of rows is delivered and says whether it was the last.
func (s *State) Scored(q *Seq) End {
	q.sent++
	if q.left() > 0 {
		return NotEnded
	}
	s.end(q)
	return EndLength
}

// Finish ends a sequence that is complete or cannot go on.
func (s *State) Finish(q *Seq) { s.end(q) }

// Strike notes that a step failed with these parts in it, and returns the sequence to be given up: one that
// failed alone after it had failed before.
func (s *State) Strike(parts []Part) *Seq {
	for _, p := range parts {
		p.Seq.strikes++
		p.Seq.failed = max(p.Seq.failed, p.Seq.done+p.Rows)
	}
	if len(parts) == 1 && parts[0].Seq.strikes >= 2 {
		return parts[0].Seq
	}
	return nil
}
