package actors

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/sample"
)

// sampler turns the logits of a step into tokens. It accepts flush (scheduler) and *step (device), and keeps
// nothing between steps: whatever sampling depends on travels with the sequence.
type sampler struct {
	system      *run.System
	out         samplerEdges
	width       int                   // of a row of logits
	working     *atomic.Pointer[step] // what it works on; its incarnations share this
	incarnation int
	gen         uint64
	sample      *sample.Sampler
	quick       int      // steps of grammars that a step of the model may take here
	bound       []chosen // tokens of this step that a grammar binds
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
			m.times.sampling = now()
			s.step(m)
			s.ahead(m)
			s.working.Store(nil)
			m.times.sampled = now()
			s.out.step.Send(m)
		}
	default:
		s.system.Lifecycle(c)
	}
}

// ahead finds what may follow the tokens that were chosen, where that is soon done; masks finds the rest. All sequences
// of a step share the time that there is for it.
func (s *sampler) ahead(m *step) {
	left := s.quick
	for i, x := range s.bound {
		if left <= 0 {
			return
		}
		spent, found := x.by.Ahead(x.id, constrain.Grant{Steps: left / (len(s.bound) - i)})
		left -= spent
		m.results[x.part].unmasked = !found
	}
}

func (s *sampler) step(m *step) {
	s.bound = s.bound[:0]
	row := 0
	for i, p := range m.parts {
		q := p.Seq.Owner.(*sequence)
		logits, first := m.compute.Logits[row*s.width:(row+p.Wanted)*s.width], row
		row += p.Wanted
		m.results[i] = outcome{}
		switch {
		case p.Wanted == 0 || q.cancelled.Load():
		case first < len(m.compute.Draws) && !m.compute.Draws[first].Host: // the device has done it
			m.results[i] = outcome{Result: sample.Result{ID: m.compute.Drawn[first], State: q.state}}
		case q.Score:
			q.rows = append(q.rows[:0], logits...)
		default:
			m.results[i] = s.one(p, q, logits)
			s.binds(i, p.Seq, q, &m.results[i])
		}
	}
}

func (s *sampler) one(p batch.Part, q *sequence, logits []float32) outcome {
	var allowed []uint64
	if q.bound != nil {
		allowed = q.bound.May()
	}
	r, err := s.sample.SampleAmong(allowed, logits, q.params, p.Seq.Tokens, q.state)
	if err != nil {
		return outcome{err: fmt.Errorf("position %d: %w", len(p.Seq.Tokens), err)}
	}
	return outcome{Result: r}
}

// binds notes a token after which a grammar says what may follow.
func (s *sampler) binds(part int, of *batch.Seq, q *sequence, r *outcome) {
	if q.bound == nil || r.err != nil || of.EndsBy(r.ID) {
		return
	}
	r.unmasked = true // until the mask is found
	s.bound = append(s.bound, chosen{q.bound, r.ID, part})
}
