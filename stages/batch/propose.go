package batch

// Proposer guesses the tokens that follow a sequence's, for speculative decoding. A guess costs a row, and never
// changes a token: a proposed token is accepted only where it equals the one that is drawn in its place.
type Proposer interface {
	// Propose appends to out at most n tokens that may follow those of the sequence, and returns out. It is quick
	// beside a step, and keeps neither slice.
	Propose(tokens []int32, n int, out []int32) []int32
	// Ready says whether there are tokens to propose. If not, the sequence's next step can be planned before the
	// tokens of the one in flight are known. It is called often, and gives the same answer for the same tokens.
	Ready(tokens []int32) bool
}

// propose adds rows of proposed tokens behind the n rows that the sequence has in the step, and returns how many.
// Granted blocks, the tokens that the sequence may still have, and its credit bound them.
func (p *planner) propose(q *Seq, n int) int {
	most := min(p.s.limits.Proposed, p.spare, p.rows-n, q.room()-q.planned-n)
	most = min(most, q.MaxLen-len(q.Tokens)-1, Window-q.unread()-1) // one more token is drawn
	if most <= 0 || p.step.Prompt {
		return 0
	}
	rows := len(p.step.Tokens)
	p.step.Tokens = q.Proposer.Propose(q.Tokens, most, p.step.Tokens)
	p.step.Tokens = p.step.Tokens[:min(len(p.step.Tokens), rows+most)]
	proposed := len(p.step.Tokens) - rows
	p.spare -= proposed
	return proposed
}

// holds says whether the next step waits for the one in flight: a sequence in it has tokens to propose once it is back.
// Without it a step would be of the others alone, and the one after that of all: two, where one does as well.
func (s *State) holds() bool {
	if !s.limits.Draws || s.flying == 0 {
		return false
	}
	for _, q := range s.seqs {
		if q.pending > 0 && q.phase == running && !q.Score && len(q.Tokens)+q.pending < q.MaxLen && q.proposes() {
			return true
		}
	}
	return false
}
