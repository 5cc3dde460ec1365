package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/reply"
	"github.com/sluice-ai/sluice/stages/speculate"
	"github.com/sluice-ai/sluice/stages/tools"
)

// A session accepts *tokenMessage and *seqFailed (scheduler), *restarted (sessions, when the scheduler has lost its
// state) and *hangUp.
//
// hangUp, from the stream or at shutdown, cancels the request.
type hangUp struct{ err error }

func (*hangUp) Urgent() {}
func (*hangUp) Late()   {}

// session is the actor of one request: it encodes the prompt, submits it, reads text, thoughts and calls out of the
// answer's tokens, and feeds the stream.
type session struct {
	system  *run.System
	turns   *run.Turns
	spec    *spec
	record  *record // outlives the session
	stats   *stats
	ids     *atomic.Uint64 // the last sequence's number, shared by all sessions
	outlook *outlook
	out     sessionEdges
	seq     *sequence
	read    reply.Reader
}

type sessionEdges struct {
	submit run.Edge[submit]
	cancel run.Edge[cancel]
	wake   run.Edge[wake] // sent by its stream
}

func (s *session) Receive(c actor.Context) {
	r := s.record
	switch m := c.Message().(type) {
	case *actor.Started:
		s.start(c)
	case *tokenMessage:
		if m.seq == s.seq {
			s.token(c, m)
		}
	case *seqFailed:
		if m.seq == s.seq {
			s.end(c, m.err)
		}
	case *restarted:
		s.submit(c)
	case *hangUp:
		s.end(c, m.err)
	case *actor.Stopping:
		s.abandon(c)
	case *actor.Stopped:
		if !r.stays() {
			r.refuse(ErrClosed)
		}
	case *actor.Restarting:
		s.abandon(c)
	default:
		s.system.Lifecycle(c)
	}
}

// start encodes the prompt, or takes up what an earlier incarnation left.
func (s *session) start(c actor.Context) {
	if s.record.life.past(lifeEnded) { // sessions restarted after the request's end and before its session's
		c.Stop(c.Self())
		return
	}
	if s.record.life.gone.Load() {
		s.end(c, errGone)
		return
	}
	var err error
	s.spend(bill.Queue)
	s.turns.Leave(func() { err = s.prepare() })
	s.spend(bill.Tokenize)
	if err != nil {
		s.end(c, err)
		return
	}
	s.submit(c)
}

func (s *session) prepare() error {
	r := s.record
	if !r.life.past(lifeEncoded) {
		if err := r.asked.encode(s.spec, r.life.gone.Load); err != nil {
			return err
		}
		if len(r.asked.prompt.shown) > 0 || s.spec.ear != nil {
			s.spend(bill.Tokenize)
			err := r.asked.look(s.spec)
			if s.spend(bill.Pictures); err != nil {
				return err
			}
		}
		r.stream.count(func(u *Usage) { u.Prompt = r.asked.terms.Prompt })
		r.life.reach(lifeEncoded)
	}
	s.read = s.spec.reader(&r.asked)
	for _, id := range r.answer { // the stream has these already
		s.read.Push(id, batch.NotEnded)
	}
	return nil
}

// submit hands the rest of the work to the scheduler, as a new sequence.
func (s *session) submit(c actor.Context) {
	r := s.record
	if s.abandon(c); r.life.past(lifeSubmitted) {
		s.spend(bill.Restart)
	}
	bound, err := s.bind()
	if err != nil {
		s.end(c, err)
		return
	}
	a := &r.asked
	known := a.terms.Prompt + len(r.answer)
	tokens := append(make([]int32, 0, min(a.terms.MaxLen, known+tokenSlack)), a.prompt.Tokens...)
	q := &sequence{of: a, session: c.Self(), bound: bound, state: r.state, cached: -1}
	q.Seq = batch.Seq{Terms: &a.terms, ID: batch.ID(s.ids.Add(1)), Tokens: append(tokens, r.answer...), Owner: q}
	guessed := s.spec.guesses && !q.Score && !a.Unguessed
	q.drafts = guessed && s.spec.drafted
	if guessed && !s.spec.textless {
		s.turns.Leave(func() { q.source = s.source(q.Tokens, min(q.MaxLen, cap(q.Tokens))) })
	}
	q.prompt = &r.stream.prompt
	q.prompt.total.Store(int64(a.terms.Prompt))
	q.submit.seq, q.cancel.seq, q.wake.seq = q, q, q
	q.wakeUp = func() { s.out.wake.Send(&q.wake) }
	s.seq = q
	if r.life.reach(lifeSubmitted) {
		r.sent = trace.Instant()
		r.stream.count(func(u *Usage) { u.Queue = r.sent.Sub(a.opened) })
		q.fresh = true
		if len(a.Pictures) == 0 {
			a.terms.Cached = s.outlook.cached(a.Salt, a.prompt.Tokens)
		}
		s.stats.promptTokens.Add(uint64(a.terms.Prompt))
	}
	s.spend(bill.Grammar)
	if q.spending.bill = r.spent; len(r.answer) > 0 {
		q.spending.bill.Decodes()
	}
	s.out.submit.Send(&q.submit)
}

// spend notes what the request's time went to up to now.
func (s *session) spend(c bill.Cause) { s.record.spent.Until(trace.Instant(), c) }

// source returns what proposes tokens after a text, which may grow to so many tokens.
func (s *session) source(text []int32, tokens int) speculate.Source {
	repeats := speculate.NewNGram(text, tokens)
	a := &s.record.asked
	if len(a.predicted) == 0 {
		return repeats
	}
	return speculate.NewPredicted(a.predicted, a.terms.Prompt, repeats)
}

// bind returns the constraint of a sequence whose request has a grammar, or a limit on thoughts; nil: none.
func (s *session) bind() (c *constrain.Constraint, err error) {
	p, most := s.record.asked.prompt, s.record.asked.MostThoughts
	if p.Bound.Of != nil || most > 0 {
		s.turns.Leave(func() {
			a := constrain.Answer{Bound: p.Bound, Most: most, Vocab: s.spec.vocab, Prompt: len(p.Tokens)}
			if a.Bound.Grammar, err = s.record.asked.compile(); err != nil {
				return
			}
			switch {
			case p.Bound.Calls:
				a.Trie = s.spec.calls()
			case p.Bound.Of != nil:
				a.Trie = s.spec.trie()
			}
			a.Begins = func() *tools.Parser { return s.spec.parser(true, p.Tail, p.Tools) }
			c = constrain.New(a)
			if err = c.Ready(s.record.answer); err != nil {
				err = c.In(err)
			}
		})
	}
	return c, err
}

// abandon cancels the sequence under way, if any.
func (s *session) abandon(c actor.Context) {
	if s.seq != nil && s.seq.cancelled.CompareAndSwap(false, true) {
		s.out.cancel.Send(&s.seq.cancel)
	}
	s.seq = nil
}

// end finishes the stream and stops the session. If err is nil, the sequence has ended by itself.
func (s *session) end(c actor.Context, err error) {
	if err != nil {
		s.abandon(c)
	}
	s.record.end(err)
	c.Stop(c.Self())
}

func (s *session) token(c actor.Context, m *tokenMessage) {
	r := s.record
	if r.life.reach(lifeAnswering) {
		r.began = m.at
		r.stream.count(func(u *Usage) { u.Prefill, u.Cached = r.began.Sub(r.sent), m.cached })
	}
	if r.asked.terms.Score {
		s.rows(c, m)
		return
	}
	s.timed(m.at)
	r.spent = m.spent
	r.answer = append(r.answer, m.result.ID)
	r.state = m.result.State
	s.stats.generated.Add(1)
	finish := finishOf(m.end, s.read.Push(m.result.ID, m.end))
	r.stream.push(&m.seq.credit, func(e *Event, u *Usage) {
		e.Text, e.Parts = append(e.Text, s.read.Text...), append(e.Parts, s.read.Parts...)
		e.HasToken, e.Token, e.LogProb, e.Top, e.Finish = true, m.result.ID, m.result.LogProb, m.result.Top, finish
		e.At, e.Stop, e.Drift = m.at, s.read.Stops.Found(), m.result.State.Drift
		u.Generated++
		u.Proposed += m.tried
		u.Accepted += m.right
		u.Decode = m.at.Sub(r.began)
		u.Spent = m.spent
	})
	if finish == Running {
		return
	}
	if m.end == batch.NotEnded {
		s.abandon(c)
	}
	s.end(c, nil)
}

// timed adds to the statistics how long the client waited for a token.
func (s *session) timed(at time.Time) {
	r := s.record
	if r.last.IsZero() {
		s.stats.firstToken.add(at.Sub(r.asked.opened))
	} else {
		s.stats.between.add(at.Sub(r.last))
	}
	r.last = at
}

func finishOf(end batch.End, stopped bool) Finish {
	switch {
	case stopped, end == batch.EndToken:
		return Stopped
	case end == batch.EndLength:
		return Length
	}
	return Running
}

// rows hands the logits of a score's rows to the stream, without those that an earlier incarnation handed over.
func (s *session) rows(c actor.Context, m *tokenMessage) {
	r := s.record
	width := s.spec.bound.OutputWidth()
	rows := m.seq.rows
	if skip := r.scored - m.pos; skip > 0 {
		rows = rows[min(skip*width, len(rows)):]
	}
	if len(rows) == 0 {
		m.seq.giveBack()
	} else {
		pos := r.scored
		r.scored += len(rows) / width
		r.stream.push(&m.seq.credit, func(e *Event, _ *Usage) { e.Pos, e.Logits = pos, rows })
	}
	if m.end != batch.NotEnded {
		s.end(c, nil)
	}
}
