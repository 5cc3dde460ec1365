package batch

// Proposer guesses how one sequence goes on. What it guesses costs rows, and never a token: a proposed token is
// accepted where it is the one that is drawn in its place.
type Proposer interface {
	// Propose appends to out at most n tokens that may follow those of the sequence, and returns it. It takes no time that
	// a step would notice, and keeps neither slice.
	Propose(tokens []int32, n int, out []int32) []int32
	// Ready says whether it has any to propose. Where it has not, the sequence's next step need not wait for this one's
	// tokens. It is asked often, and says the same of the same tokens.
	Ready(tokens []int32) bool
}

// propose gives a sequence rows of tokens that may follow, behind the n rows of those that it has, and returns how
// many. What may be needed at once must fit: blocks, the tokens that the sequence may still have, its client's credit.
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
