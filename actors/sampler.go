package actors

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/sample"
)

// sampler turns the logits of a step into tokens. It accepts Flush (scheduler) and *step (device), and keeps nothing
// between steps: all state that sampling depends on travels with the sequence.
type sampler struct {
	system      *run.System
	out         samplerEdges
	width       int                   // of a row of logits
	working     *atomic.Pointer[step] // the step that it works on; shared by its incarnations
	incarnation int
	gen         uint64
	sample      *sample.Sampler
	quick       int      // steps of grammars that a step of the model may take here
	left        int      // how many of quick are left for this step
	tries       int      // how many of left rows of proposed tokens may use
	bound       []chosen // tokens of this step that a grammar binds
	history     []int32  // scratch: tokens of a sequence, and the proposed tokens that are accepted so far
}

// chosen is a token that was chosen under a constraint.
type chosen struct {
	by   *constrain.Constraint
	id   int32
	part int
}

type samplerEdges struct {
	restarted run.Edge[restarted]
	step      run.Edge[step]
}

func (s *sampler) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.sample = sample.NewSampler(s.width)
		if s.incarnation > 0 {
			s.out.restarted.Send(&restarted{During: s.working.Swap(nil)})
		}
	case *run.Flush:
		s.gen = m.Gen
		m.Done()
	case *step:
		switch {
		case m.gen != s.gen || m.compute.Logits == nil:
		case m.err != nil:
			m.times.sampling, m.times.sampled = time.Time{}, time.Time{}
			s.out.step.Send(m)
		default:
			s.working.Store(m)
			m.times.sampling = trace.Instant()
			s.step(m)
			m.times.masking = trace.Instant()
			s.ahead(m)
			s.working.Store(nil)
			m.times.sampled = trace.Instant()
			s.out.step.Send(m)
		}
	default:
		s.system.Lifecycle(c)
	}
}

// ahead finds the masks of what may follow the chosen tokens, if that takes few steps of their grammars; masks finds
// the rest. All sequences of a step share the time that there is for it.
func (s *sampler) ahead(m *step) {
	for i, x := range s.bound {
		if s.left <= 0 {
			return
		}
		m.results[x.part].unmasked = !s.follow(x.by, x.id, s.left/(len(s.bound)-i))
	}
}

// follow has a constraint take in a token, and says whether the mask of what may follow was found within so many
// steps.
func (s *sampler) follow(by *constrain.Constraint, id int32, steps int) bool {
	spent, found := by.Ahead(id, constrain.Grant{Steps: steps})
	s.left -= spent
	s.tries -= spent
	return found
}

func (s *sampler) step(m *step) {
	s.bound, m.drawn, s.left = s.bound[:0], m.drawn[:0], s.quick
	s.tries = s.quick / shareOfProposed
	row := 0
	for i, p := range m.parts {
		q := p.Seq.Owner.(*sequence)
		m.results[i] = outcome{}
		switch {
		case p.Wanted == 0 || q.cancelled.Load():
		case q.Score:
			q.rows = append(q.rows[:0], m.compute.Logits[row*s.width:(row+p.Wanted)*s.width]...)
		default:
			s.part(m, i, row)
		}
		row += p.Wanted
	}
}

// part samples the tokens that a part gives its sequence, from its rows, which begin at row. Each token is drawn as if
// it alone had been asked for; the next one is drawn only if the token is the one that was proposed in its place. If a
// grammar applies, the mask of what may follow must be found at once: if it is not, the proposed tokens behind it are
// not looked at.
func (s *sampler) part(m *step, part, row int) {
	p, r, begin := m.parts[part], &m.results[part], len(m.drawn)
	q := p.Seq.Owner.(*sequence)
	tokens, last := m.proposals(part), q.state
	history := p.Seq.Tokens
	if before := q.before(); p.Proposed > 0 || len(before) > 0 {
		s.history = append(append(s.history[:0], before...), history...)
		history = s.history
	}
	for i := range p.Wanted {
		var one sample.Result
		at := row + i
		drawn := at < len(m.compute.Draws) && !m.compute.Draws[at].Host
		if drawn { // the device has done it
			one = sample.Result{ID: m.compute.Drawn[at], State: last}
		} else if one, r.err = s.one(q, m.compute.Logits[at*s.width:(at+1)*s.width], history, last); r.err != nil {
			break
		}
		m.drawn, last = append(m.drawn, one), one.State
		goes := i < p.Proposed && one.ID == tokens[i]
		if p.Seq.EndsBy(i, one.ID) || !drawn && s.binds(part, q, r, one.ID, goes) || !goes {
			break
		}
		s.history = append(s.history, one.ID)
		history = s.history
	}
	r.tokens = m.drawn[begin:]
}

// one samples a token from a row of logits; history is the tokens before it.
func (s *sampler) one(q *sequence, logits []float32, history []int32, st sample.State) (sample.Result, error) {
	var allowed []uint64
	if q.bound != nil {
		allowed = q.bound.May()
	}
	if tell := q.of.Explains; tell != nil {
		r, choice, err := s.sample.Explain(allowed, logits, &q.of.Sampling, history, st)
		if err == nil {
			tell(choice)
		}
		return r, err
	}
	r, err := s.sample.SampleAmong(allowed, logits, &q.of.Sampling, history, st)
	if err != nil {
		return r, fmt.Errorf("position %d: %w", len(history), err)
	}
	return r, nil
}

// shareOfProposed is the divisor for the part of quick that rows of proposed tokens may use, one after the other.
const shareOfProposed = 2

// binds notes a chosen token if a grammar applies. If the part goes on, the mask of what may follow is looked for at
// once; binds returns true if it was not found.
func (s *sampler) binds(part int, q *sequence, r *outcome, id int32, goes bool) (cut bool) {
	switch {
	case q.bound == nil:
		return false
	case goes && s.tries > 0:
		r.cut = !s.follow(q.bound, id, s.tries)
		r.unmasked = r.cut // masks goes on where this stopped
		return r.cut
	case goes:
		r.cut = true
	}
	r.unmasked = true // until the mask is found
	s.bound = append(s.bound, chosen{q.bound, id, part})
	return r.cut
}
