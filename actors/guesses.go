package actors

import (
	"cmp"
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/speculate"
)

// guesses chooses what proposes tokens for a model's sequences, and learns what that costs and gains. It belongs to
// the scheduler.
type guesses struct {
	clock   *speculate.Clock                    // what rows of guesses cost
	propose func(prompt []int32) batch.Proposer // replaces the proposers in tests
	learned *speculate.Drafts                   // what guesses of a draft model cost and gain; nil: there is none
	width   int                                 // of a hidden state for the head that is the draft model; 0: it is none
	took    time.Duration                       // the time that a test says each step has taken; 0: the real one
	again   bool                                // rows of accepted tokens are computed again, for recurrent states
	stats   *stats
	track   *track
	ended   time.Time // when the last step of answers was sampled
}

// begin sets what proposes tokens for a sequence.
func (g *guesses) begin(q *sequence) {
	switch {
	case q.Score:
	case g.propose != nil:
		q.Proposer = g.propose(q.Tokens[:q.Prompt])
	case q.source != nil || q.drafts:
		q.guesses = speculate.NewAdaptive(q.source, g.clock, g.learned)
		q.guesses.Again = g.again
		if q.drafts && g.width > 0 {
			q.hidden = newHidden(g.width)
		}
		q.Proposer = q.guesses
	}
}

// measured has the clock learn from a step how long it kept the model busy: if two are in flight, from the end of the
// step before to its own. So it is if the step has guesses, since it waited for the one before; not where a draft model
// makes guesses in between, whose time is known apart. A step after which other models had work says nothing.
func (g *guesses) measured(m *step) {
	rows := len(m.compute.Tokens)
	guesses, from := rows-len(m.parts), m.times.planned
	if g.ended.After(from) || guesses > 0 && g.learned == nil && !g.ended.IsZero() {
		from = g.ended
	}
	g.ended = m.times.sampled
	if m.answers() && m.decodes() && !m.contended {
		g.clock.Observe(rows, guesses, cmp.Or(g.took, g.ended.Sub(from)))
	}
}

// settled counts how many of a part's proposed tokens were accepted. A part without tokens was not sampled, and says
// nothing. If the check was cut short for want of a mask (cut), the tokens behind were not judged.
func (g *guesses) settled(p batch.Part, r *outcome) {
	if p.Proposed == 0 || len(r.tokens) == 0 {
		return
	}
	right := len(r.tokens) - 1
	g.stats.proposed.Add(uint64(p.Proposed))
	g.stats.accepted.Add(uint64(right))
	h := p.Seq.Owner.(*sequence)
	if h.guesses != nil {
		if h.guesses.ByDraft() {
			g.stats.drafted.Add(uint64(p.Proposed))
			g.stats.draftedRight.Add(uint64(right))
		}
		judged := p.Proposed
		if r.cut {
			judged = right
		}
		h.guesses.Settle(judged, right)
	}
	g.track.settled(h, right)
}
