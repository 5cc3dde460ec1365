package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/sample"
)

// sampler turns the logits of a step into tokens. It accepts flush (scheduler) and *step (device), and keeps
// nothing between steps: whatever sampling depends on travels with the sequence.
type sampler struct {
	*core
	out         samplerEdges
	incarnation int
	gen         uint64
	sample      *sample.Sampler
}

func (s *sampler) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.sample = sample.NewSampler(s.bound.Vocab)
		if s.incarnation > 0 {
			s.out.restarted.Send(&restarted{During: s.sampling.Swap(nil)})
		}
	case *run.Flush:
		s.gen = m.Gen
		m.Done()
	case *step:
		if m.gen == s.gen && m.compute.Logits != nil {
			s.sampling.Store(m)
			m.times.sampling = now()
			s.step(m)
			s.sampling.Store(nil)
			m.times.sampled = now()
			s.out.step.Send(m)
		}
	default:
		s.system.Lifecycle(c)
	}
}

func (s *sampler) step(m *step) {
	row := 0
	for i, p := range m.parts {
		q := p.Seq.Owner.(*sequence)
		logits := m.compute.Logits[row*s.bound.Vocab : (row+p.Wanted)*s.bound.Vocab]
		row += p.Wanted
		m.results[i] = outcome{}
		switch {
		case p.Wanted == 0 || q.cancelled.Load():
		case q.Score:
			q.rows = append(q.rows[:0], logits...)
		default:
			m.results[i] = s.one(p, q, logits)
		}
	}
}

func (s *sampler) one(p batch.Part, q *sequence, logits []float32) outcome {
	r, err := s.sample.Sample(logits, q.params, p.Seq.Tokens, q.state)
	if err != nil {
		return outcome{err: fmt.Errorf("position %d: %w", len(p.Seq.Tokens), err)}
	}
	return outcome{Result: r}
}
