package actors

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/speculate"
)

// scheduler forms steps, and keeps as many in flight as the device takes. batch.State decides what they compute; this
// file carries it out. Messages that it accepts, by their senders: *submit and *cancel from a session, *wake from a
// stream or itself, *kvRequest from kv and *mask from masks as answers, *step from the sampler, *stepRing from the
// device, *run.Flushed and *restarted from kv, device and sampler, *torn from masks when it was restarted; *follow,
// *cancel and *parted from a target's scheduler, *drafted and *parted from that of a draft model, *parted from the
// house.
// Wide: it is all that one actor knows; what it decides by is in batch.State.
type scheduler struct {
	system      *run.System
	turns       *run.Turns
	log         zerolog.Logger
	out         schedulerEdges
	spec        *spec
	streams     bool // steps wait for weights
	stats       *stats
	generations *atomic.Uint64 // of schedulers
	track       *track
	lost        func(error) // called when the model's weights are gone: it cannot serve any more
	incarnation int
	gen         uint64
	unflushed   run.Waiting
	state       *batch.State
	ring        []*step // the step to send next is the first; those in flight are the last
	waits       bool    // the device may be waiting for a step of this model, or pass
	pass        *pass   // one serves all: it says the same each time
	contended   bool    // others wanted the device when the last step ended
	urgent      bool    // a session has news that should not wait: an answer begins or ends
	failing     failing
	delays      delays // what delays the next step
	pace        pace
	guesses     guesses
	drafting    drafting
	following   following
	foreseeing  foreseeing
}

// failing is what has come back since a step failed: all parts that were in flight with it get a strike together.
type failing struct {
	parts []batch.Part
	err   error // the first error; nil: no step failed
}

type schedulerEdges struct {
	partners  run.Partners // kv, mover, sampler, masks, device
	restarted run.Edge[restarted]
	begun     run.Edge[begun]
	request   run.Edge[kvRequest]
	mask      run.Counted[mask]
	step      run.Counted[step]
	pass      run.Edge[pass]
	look      run.Edge[look]
	wake      run.Edge[wake]
	token     run.Edge[tokenMessage] // at a session
	failure   run.Edge[seqFailed]    // at a session
}

func (s *scheduler) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.start(c)
	case *submit:
		if !m.seq.cancelled.Load() {
			s.admit(m.seq)
		}
	case *follow:
		if m.begins && !m.draft.seq.cancelled.Load() {
			s.admit(&m.draft.seq)
		}
		s.following.follow(s.state, m, s.unflushed == 0)
	case *drafted:
		s.drafting.answered(m)
	case *parted:
		s.following.forget(s.state)
		if s.drafting.parted(s.state.Seqs(), m.gone); m.gone {
			s.guesses.learned = nil
		}
	case *cancel:
		s.foreseeing.answered(m.seq, true)
		s.drafting.drop(m.seq)
		s.state.Cancel(m.seq.ID)
		s.track.ended(m.seq)
		if s.streams && s.out.step.Held() > 0 {
			s.out.look.Send(&look{})
		}
	case *wake: // it only has to wake the scheduler: pump collects the credit
	case *kvRequest:
		if h := m.seq.Owner.(*sequence); m.gen == s.gen && m == h.kv {
			s.kvAnswer(h, m)
		}
	case *mask:
		if m.gen == s.gen {
			s.out.mask.Give()
			s.maskFound(c, m)
		}
	case *step:
		if m.gen == s.gen {
			s.finish(c, m)
		}
	case *stepRing:
		if m.gen == s.gen {
			s.ring, s.pass = slices.Clone(m.steps), &pass{m.steps[0].guest}
		}
	case *run.Flushed:
		if m.Gen == s.gen {
			s.flushed(m)
		}
	case *restarted:
		s.strike(c, m.During)
		s.restart(c)
	case *torn:
		s.tore(c, m.During)
		s.restart(c)
	default:
		s.system.Lifecycle(c)
		return
	}
	s.pump(c)
}

func (s *scheduler) start(c actor.Context) {
	s.state = batch.New(s.spec.limits)
	s.guesses.clock = speculate.NewClock(s.spec.rowCosts())
	s.foreseeing.begin(s.spec.limits)
	s.restart(c)
	if s.incarnation > 0 {
		s.out.restarted.Send(&restarted{})
		s.drafting.begun()
	}
}

// admit takes a sequence in.
func (s *scheduler) admit(h *sequence) {
	h.kv, h.mask = newKVRequest(h), newMask(h)
	h.Host = s.spec.draw(&h.of.Sampling, 0).Host
	h.spending.begin(s.unflushed != 0)
	s.track.opened(h)
	s.state.Submit(&h.Seq)
	s.guesses.begin(h)
	if h.bound != nil && !h.bound.Found() {
		s.state.Hold(&h.Seq)
	}
}

// restart begins a new generation: the KV cache is empty, no step is under way, every sequence is computed again
// from its tokens.
func (s *scheduler) restart(c actor.Context) {
	s.gen = s.generations.Add(1)
	s.out.step.Reset()
	s.out.mask.Reset()
	s.failing = failing{}
	s.waits = false // the device forgets this model's turn with its generation
	s.state.Reset()
	s.following.lost(s.state)
	at := trace.Instant()
	for _, q := range s.state.Seqs() {
		h := q.Owner.(*sequence)
		h.kv, h.mask = newKVRequest(h), newMask(h) // the old ones may still be in a mailbox
		h.spending.again(at)
		s.hold(q)
	}
	s.unflushed = s.out.partners.Flush(s.gen)
	if s.gen == 1 {
		s.lacks(trace.Loading)
	} else {
		s.lacks(trace.Restarting)
	}
}

// flushed takes a partner's answer to Flush.
func (s *scheduler) flushed(m *run.Flushed) {
	if s.unflushed.Done(m); s.unflushed == 0 {
		s.out.begun.Send(&begun{s.gen})
	}
}

// pump sends what the state asks for: requests to the KV owner, and steps while the device takes more.
func (s *scheduler) pump(c actor.Context) {
	if s.unflushed != 0 {
		return
	}
	s.collectCredit()
	s.requestMasks()
	s.state.Share()
	s.requestKV(c)
	s.drafting.ask(s.state)
	for s.failing.err == nil && s.drafting.due == 0 && s.out.step.Held() < len(s.ring) {
		m := s.ring[0]
		var hopeless *batch.Seq
		m.budget = s.pace.budget(s.spec.limits.Rows, s.contended)
		m.parts, hopeless = s.state.Plan(m.compute, m.parts, m.budget)
		if hopeless != nil {
			s.fail(c, hopeless, errNoBlocks)
			continue
		}
		if len(m.parts) == 0 {
			s.idle(c)
			break
		}
		s.dispatch(m)
	}
	if s.drafting.due > 0 {
		s.rest(trace.Scheduler)
	}
	s.following.keep(s.state)
	held := s.out.step.Held()
	spend(s.state, held > 0, s.drafting.due > 0)
	var oldest *step
	if held > 0 {
		oldest = s.ring[len(s.ring)-held]
	}
	s.foreseeing.tell(s.state, s.pace.budget(s.spec.limits.Rows, s.contended), oldest)
	s.publishStats()
}

// idle is called when there is no step to form: it notes why, and tells the device if that waits for one.
func (s *scheduler) idle(c actor.Context) {
	s.requestKV(c) // planning may have preempted a sequence
	s.markStarved()
	s.rest(s.lack())
}

// rest notes why no step follows, if none is in flight, and tells the device if that waits for one.
func (s *scheduler) rest(cause trace.Cause) {
	if s.out.step.Held() > 0 {
		return
	}
	s.lacks(cause)
	s.stats.idle()
	if s.waits {
		s.waits = false
		s.out.pass.Send(s.pass)
	}
}

var errNoBlocks = errors.New("the KV cache has too few blocks for this sequence alone: start with a larger --ctx")

func (s *scheduler) dispatch(m *step) {
	copy(s.ring, s.ring[1:])
	s.ring[len(s.ring)-1] = m
	s.waits = true
	s.draws(m)
	m.gen, m.err = s.gen, nil
	s.delays.move(&m.delays)
	s.stats.lacking.Store(0)
	m.results = m.results[:len(m.parts)]
	m.meet.Store(0)
	m.measure()
	m.times.planned = trace.Instant()
	s.stats.stepPlanned(m)
	s.admitted(m)
	s.out.step.Take()
	s.turns.BeforeStep(m.times.planned, !m.decodes() || s.urgent || s.out.mask.Held() > 0)
	s.urgent = false
	s.out.step.Send(m)
}

// admitted notes how long requests waited, for their first rows or for more.
func (s *scheduler) admitted(m *step) {
	for _, p := range m.parts {
		q := p.Seq.Owner.(*sequence)
		q.spending.planned(m.times.planned)
		if q.fresh {
			s.stats.queue.add(m.times.planned.Sub(q.of.opened))
			q.fresh = false
		}
	}
}

// draws sets how the step's tokens are drawn, if the device can draw.
func (s *scheduler) draws(m *step) {
	m.compute.Draws = m.compute.Draws[:0]
	if !s.spec.limits.Draws {
		return
	}
	for i, p := range m.parts {
		end := m.compute.Spans[i].Pos + p.Rows + len(p.Seq.Owner.(*sequence).before())
		for at := end - p.Wanted + 1; at <= end; at++ {
			d := backend.Draw{Host: true}
			if !p.Seq.Score {
				d = s.spec.draw(&p.Seq.Owner.(*sequence).of.Sampling, at)
			}
			m.compute.Draws = append(m.compute.Draws, d)
		}
	}
}

func (s *scheduler) requestKV(c actor.Context) {
	for _, q := range s.state.Seqs() {
		want := s.state.NextKV(q)
		if want.Op == batch.KVNone {
			continue
		}
		h := q.Owner.(*sequence)
		h.kv.gen, h.kv.want = s.gen, want
		known := len(q.Tokens)
		if want.Op == batch.KVPass {
			known = want.End
		}
		if h.kv.tokens = q.Text(known); q.Score {
			h.kv.tokens = nil // every position is wanted: nothing may come from the cache
		}
		s.out.request.Send(h.kv)
	}
}

func (s *scheduler) kvAnswer(h *sequence, m *kvRequest) {
	q := m.seq
	if m.full {
		s.state.KVRefused(q)
		return
	}
	if m.want.Op == batch.KVOpen && h.cached < 0 {
		h.cached = m.cached
	}
	s.state.KVDone(q, m.want, m.tables, m.cached)
}

// hold keeps a sequence out of steps until masks has looked at its constraint: a token that was chosen may be lost, or
// the actor that chose it has failed.
func (s *scheduler) hold(q *batch.Seq) {
	if q.Owner.(*sequence).bound != nil {
		s.state.Hold(q)
	}
}

// requestMasks asks for the masks that are due, at most masksAhead at a time.
func (s *scheduler) requestMasks() {
	for s.out.mask.Held() < masksAhead {
		q := s.state.NextMask()
		if q == nil {
			return
		}
		h := q.Owner.(*sequence)
		h.mask.gen, h.mask.answer = s.gen, q.Tokens[q.Prompt:]
		s.out.mask.Take()
		s.out.mask.Send(h.mask)
	}
}

func (s *scheduler) maskFound(c actor.Context, m *mask) {
	s.state.Found(m.seq)
	if m.err != nil && s.state.Live(m.seq) {
		s.fail(c, m.seq, m.err)
	}
}

// tore blames the sequence on whose mask masks failed, and ends it the second time.
func (s *scheduler) tore(c actor.Context, during *mask) {
	if during == nil || during.gen != s.gen || !s.state.Live(during.seq) {
		return
	}
	h := during.seq.Owner.(*sequence)
	if h.tore++; h.tore > 1 {
		s.fail(c, during.seq, errors.New("this request cannot be computed: finding what its grammar allows failed twice"))
	}
}

// collectCredit learns how much clients have read. While other sequences keep steps going, this is how sequences get
// credit again, without a wake.
func (s *scheduler) collectCredit() {
	for _, q := range s.state.Seqs() {
		s.state.Consumed(q, q.Owner.(*sequence).consumed.Load())
	}
}

// markStarved arms the wake-up of sequences that wait only for their clients to read. A client that has read in the
// meantime is noticed here.
func (s *scheduler) markStarved() {
	for _, q := range s.state.Seqs() {
		if !s.state.Starved(q) {
			continue
		}
		h := q.Owner.(*sequence)
		h.starved.Store(true)
		s.state.Consumed(q, h.consumed.Load())
		if !s.state.Starved(q) && h.starved.CompareAndSwap(true, false) {
			s.out.wake.Send(&h.wake)
		}
	}
}

// finish takes a step back and gives each sequence its tokens.
func (s *scheduler) finish(c actor.Context, m *step) {
	s.out.step.Give()
	s.contended = m.contended
	s.delays.begin(m.times.sampled)
	switch {
	case s.failing.err != nil || m.err != nil && !errors.Is(m.err, errAbandoned):
		s.failed(c, m)
		return
	case m.err != nil:
		s.state.Drop(m.parts)
		lost(m)
		s.stats.idle()
		return
	}
	s.stats.stepDone(m)
	s.pace.observe(len(m.compute.Tokens), m.times.took, s.slowest(m), m.times.waited)
	took := m.times.took + m.times.waited + m.times.sampled.Sub(m.times.sampling)
	s.state.Took(m.parts, took, s.pace.unprompted(batch.Answers(m.parts)), m.budget.Fixed)
	if m.answers() {
		s.pace.answered(len(m.compute.Tokens), took, !m.decodes(), s.state.Deep(m.parts))
	}
	s.guesses.measured(m)
	s.foreseeing.computed(m)
	work := m.work()
	for i, p := range m.parts {
		r := &m.results[i]
		h := p.Seq.Owner.(*sequence)
		h.spending.done(m, &m.parts[i], &work, h.bound != nil)
		s.state.Advance(p, max(len(r.tokens)-1, 0))
		s.guesses.settled(p, r)
		h.reached(p.Rows)
		switch {
		case !s.state.Live(p.Seq) || p.Wanted == 0:
		case p.Seq.Score:
			s.scored(p, m)
		case p.Seq.Follows:
			s.following.drew(s.state, p.Seq, r)
		default:
			s.deliver(c, p, r, m)
		}
	}
}

// slowest is the time of the step's longest segment, after which it can be given up; 0: not known. It is known only of
// devices that compute within the program: on others, a segment's time here is that of enqueuing it.
func (s *scheduler) slowest(m *step) time.Duration {
	if s.spec.layout.Flight > 1 {
		return 0
	}
	return m.slowest(s.spec.bound.Segments)
}

// deliver gives a sequence the tokens of its part, up to its end.
func (s *scheduler) deliver(c actor.Context, p batch.Part, r *outcome, of *step) {
	q, h := p.Seq, p.Seq.Owner.(*sequence)
	for i := range r.tokens {
		one := &r.tokens[i]
		m := h.message(of)
		m.result, h.state = *one, one.State
		if i == 0 {
			m.tried, m.right = p.Proposed, len(r.tokens)-1
		}
		first := q.Sent() == 0
		m.end = s.state.Append(q, one.ID)
		s.track.drawn(h, one.ID)
		s.send(h, m, first)
		if m.end != batch.NotEnded {
			s.foreseeing.answered(h, m.end != batch.EndLength)
			s.drafting.drop(h)
			return
		}
	}
	switch {
	case r.err != nil:
		s.fail(c, q, r.err)
	case r.unmasked:
		s.state.Hold(q)
	}
}

// scored hands the logits of a part's rows to the session that asked for a score.
func (s *scheduler) scored(p batch.Part, of *step) {
	h := p.Seq.Owner.(*sequence)
	m := h.message(of)
	m.pos = p.Seq.Done() - p.Rows
	first := p.Seq.Sent() == 0
	m.end = s.state.Scored(p.Seq)
	s.send(h, m, first)
}

func (s *scheduler) send(h *sequence, m *tokenMessage, first bool) {
	s.urgent = s.urgent || first || m.end != batch.NotEnded
	s.out.token.At(h.session).Send(m)
}

// failed takes back a step that failed, or was in flight when another one did. When all are back, their sequences get
// a strike.
func (s *scheduler) failed(c actor.Context, m *step) {
	if s.failing.err == nil {
		s.stats.stepFailed()
		if errors.Is(m.err, backend.ErrWeights) {
			s.lost(m.err) // another try would find them gone again
		}
		s.log.Error().Err(m.err).Int("sequences", len(m.parts)).Msg("step failed")
		s.failing.err = m.err
	}
	s.failing.parts = append(s.failing.parts, m.parts...)
	lost(m)
	if s.out.step.Held() == 0 {
		s.strikeParts(c, s.failing.parts, s.failing.err)
		s.failing = failing{}
	}
}

// strike gives a strike to the sequences that were in flight when an actor failed during a step.
func (s *scheduler) strike(c actor.Context, during *step) {
	if during == nil || during.gen != s.gen {
		return
	}
	for _, m := range s.ring[len(s.ring)-s.out.step.Held():] {
		s.failing.parts = append(s.failing.parts, m.parts...)
	}
	s.strikeParts(c, s.failing.parts, errors.New("computing it failed twice"))
}

func (s *scheduler) strikeParts(c actor.Context, parts []batch.Part, cause error) {
	for _, p := range parts {
		s.hold(p.Seq)
	}
	if q := s.state.Strike(parts); q != nil {
		s.fail(c, q, fmt.Errorf("this request cannot be computed: %w", cause))
	}
}

func (s *scheduler) fail(c actor.Context, q *batch.Seq, err error) {
	h := q.Owner.(*sequence)
	if h.follows != nil {
		s.following.forsake(s.state, h.follows)
		return
	}
	s.drafting.drop(h)
	s.state.Finish(q)
	s.out.failure.At(h.session).Send(&seqFailed{h, err})
}

func (s *scheduler) publishStats() {
	s.stats.running.Store(int64(s.state.Running()))
	s.stats.waiting.Store(int64(s.state.Waiting()))
}

// lack is the cause for which the state has no step to plan although none is in flight.
func (s *scheduler) lack() trace.Cause {
	cause := trace.NoWork
	for _, q := range s.state.Seqs() {
		switch {
		case !s.state.Live(q), q.Rests():
		case s.state.Held(q):
			cause = trace.Mask
		case s.state.Starved(q):
			if cause == trace.NoWork {
				cause = trace.Credit
			}
		default:
			return trace.KV
		}
	}
	return cause
}

// lacks notes the cause for which there is no step to plan from now on.
func (s *scheduler) lacks(cause trace.Cause) {
	if s.delays.last() != cause {
		s.delays.add(cause, trace.Instant())
		s.stats.lacking.Store(uint32(cause))
	}
}
