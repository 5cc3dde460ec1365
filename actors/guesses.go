package actors

import (
	"cmp"
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/speculate"
)

// guesses says who guesses tokens of a model's sequences, and learns what that costs and gives. It is the scheduler's.
type guesses struct {
	clock   *speculate.Clock                    // what rows of guesses cost
	propose func(prompt []int32) batch.Proposer // of a test
	took    time.Duration                       // what each step is said to have taken, by a test
	again   bool                                // rows of accepted tokens are computed again, for their states
	stats   *stats
	tape    *tape
	ended   time.Time // when the newest step of answers did
}

// begin says who proposes tokens of a sequence.
func (g *guesses) begin(q *sequence) {
	switch {
	case q.Score:
	case g.propose != nil:
		q.Proposer = g.propose(q.Tokens[:q.Prompt])
	case q.source != nil:
		q.guesses = speculate.NewAdaptive(q.source, g.clock, 0)
		q.guesses.Again = g.again
		q.Proposer = q.guesses
	}
}

// measured has the clock learn from a step: the time that it kept the model from others, where two are in flight from
// one's end to the next one's. Where other models had work it says nothing.
func (g *guesses) measured(m *step) {
	from := m.times.planned
	if g.ended.After(from) {
		from = g.ended
	}
	g.ended = m.times.sampled
	if m.decodes() && !m.contended {
		rows := len(m.compute.Tokens)
		g.clock.Observe(rows, rows-len(m.parts), cmp.Or(g.took, g.ended.Sub(from)))
	}
}

// settled keeps account of what was proposed. Of a part that was not looked at no token is known, and of the proposed
// tokens behind one whose mask takes long to find none is wrong.
func (g *guesses) settled(p batch.Part, r *outcome) {
	if p.Proposed == 0 || len(r.tokens) == 0 {
		return
	}
	right := len(r.tokens) - 1
	g.stats.proposed.Add(uint64(p.Proposed))
	g.stats.accepted.Add(uint64(right))
	h := p.Seq.Owner.(*sequence)
	if h.guesses != nil {
		judged := p.Proposed
		if r.cut {
			judged = right
		}
		h.guesses.Settle(judged, right)
	}
	g.tape.settled(h, right)
}
