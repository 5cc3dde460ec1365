package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/stop"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// All that a session accepts: *tokenMessage and *seqFailed (scheduler), *restarted (sessions, when the scheduler has
// lost its state), and
//
// hangUp, from the stream or at shutdown: the request is given up.
type hangUp struct{ err error }

func (*hangUp) Urgent() {}
func (*hangUp) Late()   {}

// session is the life of one request: it encodes the prompt, submits it, reads the parts of the answer out of its
// tokens, and feeds the stream.
type session struct {
	system *run.System
	turns  *run.Turns
	*spec
	stats *stats
	ids   *atomic.Uint64 // of sequences
	*record
	out  sessionEdges
	seq  *sequence
	read reading
}

type sessionEdges struct {
	submit run.Edge[submit]
	cancel run.Edge[cancel]
	wake   run.Edge[wake] // its stream's
}

func (s *session) Receive(c actor.Context) {
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
		if !s.stays() {
			s.stream.finish(s.usage, ErrClosed)
			s.leave()
		}
	case *actor.Restarting:
		s.abandon(c)
	default:
		s.system.Lifecycle(c)
	}
}

// start encodes the prompt, or takes up what an earlier incarnation left.
func (s *session) start(c actor.Context) {
	if s.stream.finished() { // sessions restarted between this request's end and its session's
		c.Stop(c.Self())
		return
	}
	if s.gone.Load() {
		s.end(c, errGone)
		return
	}
	var err error
	s.turns.Leave(func() { err = s.prepare() })
	if err != nil {
		s.end(c, err)
		return
	}
	s.submit(c)
}

func (s *session) prepare() error {
	if s.tokens == nil {
		if err := s.encode(); err != nil {
			return err
		}
	}
	s.read = reading{vocab: s.vocab, marks: s.marks, detok: s.decoder(), stops: stop.New(s.request.Stop)}
	if s.request.Thoughts || s.request.Tools != nil {
		s.read.forced = s.request.Tools != nil && s.request.Tools.Must
		s.read.parser = s.parser(s.request.Thoughts, s.tail, s.tools)
	}
	for _, id := range s.tokens[s.prompt:] { // these parts are with the stream already
		s.read.push(id, batch.NotEnded)
	}
	return nil
}

// encode turns the request's prompt into tokens and checks that they fit.
func (s *session) encode() error {
	r := s.record
	p, err := s.promptOf(&r.request, r.gone.Load)
	if err != nil {
		return err
	}
	if r.limit, err = s.measure(&r.request, p); err != nil {
		return err
	}
	r.prompt, r.tokens = len(p.tokens), p.tokens[:len(p.tokens):len(p.tokens)] // others share the array
	r.opening, r.rendered = p.opening, p.rendered
	r.usage.Prompt = r.prompt
	r.request.Chat, r.request.Text, r.request.prompt = nil, "", nil // nobody reads them again
	return nil
}

// decoder begins the answer's text: a new one after a template or a control token, else a continuation of the
// prompt's, to which a leading space belongs.
func (s *session) decoder() *token.Stream {
	if s.rendered || s.vocab.IsControl(s.tokens[s.prompt-1]) {
		return s.vocab.Stream(false)
	}
	return s.vocab.Resume(false)
}

// submit hands the work that is left to the scheduler, as a new sequence.
func (s *session) submit(c actor.Context) {
	s.abandon(c)
	bound, err := s.bind()
	if err != nil {
		s.end(c, err)
		return
	}
	q := &sequence{session: c.Self(), params: &s.request.Sampling, salt: s.request.Salt, state: s.state, cached: -1}
	q.bound = bound
	q.Seq = batch.Seq{
		ID: batch.ID(s.ids.Add(1)), Tokens: append(make([]int32, 0, min(s.limit, len(s.tokens)+tokenSlack)), s.tokens...),
		Prompt: s.prompt, MaxLen: s.limit, Ends: s.ends(), Score: s.request.score, Client: s.request.Client, Owner: q,
	}
	q.submit.seq, q.cancel.seq, q.wake.seq = q, q, q
	q.wakeUp = func() { s.out.wake.Send(&q.wake) }
	s.seq = q
	if s.sent.IsZero() {
		s.sent = now()
		s.usage.Queue = s.sent.Sub(s.opened)
		q.opened = s.opened
		s.stats.promptTokens.Add(uint64(s.prompt))
	}
	s.out.submit.Send(&q.submit)
}

// bind makes the constraint of a sequence whose request has a grammar, or whose thoughts have an end.
func (s *session) bind() (c *constraint, err error) {
	if s.form.of != nil || s.request.MostThoughts > 0 {
		s.turns.Leave(func() {
			if err = s.compile(); err != nil {
				return
			}
			c = &constraint{form: s.form, most: s.request.MostThoughts, vocab: s.vocab, prompt: s.prompt}
			switch {
			case s.form.calls:
				c.trie = s.calls()
			case s.form.of != nil:
				c.trie = s.trie()
			}
			c.begins = func() *tools.Parser { return s.parser(true, s.tail, s.tools) }
			if err = c.ready(s.tokens[s.prompt:]); err != nil {
				err = s.form.of.refuse(err)
			}
		})
	}
	return c, err
}

// compile makes what the answer is bound to be, where nobody has: the next sequence of the session has it, too.
func (s *session) compile() error {
	if s.form.of == nil {
		return nil
	}
	if s.request.made == nil {
		made, err := s.form.of.Make()
		if err != nil {
			return s.form.of.refuse(err)
		}
		s.request.made = made
	}
	s.form.grammar = s.request.made
	return nil
}

// tokenSlack is room for generated tokens that is allocated at once.
const tokenSlack = 1024

func (s *session) ends() func(int32) bool {
	if s.request.IgnoreEOG {
		return nil
	}
	return s.vocab.IsEOG
}

// abandon cancels the sequence under way, if any.
func (s *session) abandon(c actor.Context) {
	if s.seq != nil && s.seq.cancelled.CompareAndSwap(false, true) {
		s.out.cancel.Send(&s.seq.cancel)
	}
	s.seq = nil
}

// end finishes the stream and the session. Without an error the sequence has ended by itself.
func (s *session) end(c actor.Context, err error) {
	if err != nil {
		s.abandon(c)
	}
	s.stream.finish(s.usage, err)
	c.Stop(c.Self())
}

func (s *session) token(c actor.Context, m *tokenMessage) {
	if s.began.IsZero() {
		s.began = m.at
		s.usage.Prefill, s.usage.Cached = s.began.Sub(s.sent), m.cached
	}
	if s.request.score {
		s.rows(c, m)
		return
	}
	s.timed(m.at)
	s.tokens = append(s.tokens, m.result.ID)
	s.state = m.result.State
	s.usage.Generated++
	s.stats.generated.Add(1)
	s.usage.Decode = m.at.Sub(s.began)

	finish := finishOf(m.end, s.read.push(m.result.ID, m.end))
	s.stream.push(&m.seq.credit, func(e *Event) {
		e.Text, e.Parts = append(e.Text, s.read.text...), append(e.Parts, s.read.parts...)
		e.HasToken, e.Token, e.LogProb, e.Top, e.Finish = true, m.result.ID, m.result.LogProb, m.result.Top, finish
		e.At, e.Stop = m.at, s.read.stops.Found()
		s.stream.usage = s.usage // whose lock is held
	})
	if finish == Running {
		return
	}
	if m.end == batch.NotEnded {
		s.abandon(c)
	}
	s.end(c, nil)
}

// timed keeps account of how long a client waits for tokens.
func (s *session) timed(at time.Time) {
	if s.last.IsZero() {
		s.stats.firstToken.add(at.Sub(s.opened))
	} else {
		s.stats.between.add(at.Sub(s.last))
	}
	s.last = at
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

// rows hands a chunk of a score on, less what an earlier incarnation handed on already.
func (s *session) rows(c actor.Context, m *tokenMessage) {
	width := s.bound.OutputWidth()
	rows := m.seq.rows
	if skip := s.scored - m.pos; skip > 0 {
		rows = rows[min(skip*width, len(rows)):]
	}
	if len(rows) == 0 {
		m.seq.giveBack()
	} else {
		pos := s.scored
		s.scored += len(rows) / width
		s.stream.push(&m.seq.credit, func(e *Event) { e.Pos, e.Logits = pos, rows })
	}
	if m.end != batch.NotEnded {
		s.end(c, nil)
	}
}
