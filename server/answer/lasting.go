package answer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// lasting is what of a service's streamed answers outlives the process: they are written as they are drawn, to files,
// or to the member of the cluster that passes them on.
type lasting struct {
	answers *actors.Answers        // nil: no files are kept
	again   func(owner, id string) // goes on with an answer that nobody reads

	opening sync.Mutex // held while a file is opened and its run entered: who finds the file busy finds the run

	mu   sync.Mutex
	runs map[answerKey]*run           // that are computed
	past map[*exchange.Exchange]*past // requests that are served again
}

type answerKey struct{ owner, id string }

// past is an answer that is gone on with, and how many of its events its client has, by slot; nil: none.
type past struct {
	*actors.AnswerPast
	seen []int
}

// mostTries is how often an answer goes on by itself from the same token: it may be what ends the process.
const mostTries = 10

// Last has streamed answers written to files. again serves an answer's request once more, for nobody.
func (s *Service) Last(answers *actors.Answers, again func(owner, id string)) {
	s.lasting.answers, s.lasting.again = answers, again
}

// Lasts says whether answers are kept in files.
func (s *Service) Lasts() bool { return s.lasting.answers != nil }

// Again has the exchange go on with an answer of its client that was begun before. seen is how many events the client
// has: one number if the answer has one choice, else a number for each choice and one for the end. If the answer is
// being computed for another connection, that connection ends; not where seen is nil: then the exchange is nobody's.
// Again returns the path of the answer's request, to be served in place of the exchange's; "" if there is no such
// answer.
func (s *Service) Again(x *exchange.Exchange, id string, seen []int) (path string) {
	l := &s.lasting
	if !s.Lasts() {
		return ""
	}
	switch key := (answerKey{x.Client, id}); {
	case seen != nil:
		l.take(x.Context, key)
	case l.runOf(key) != nil: // its client was sooner; where that comes later, it finds the file open, or has it open
		return ""
	}
	p := l.answers.Find(x.Client, id)
	if p == nil {
		return ""
	}
	x.Salt = p.Salt
	l.remember(x, &past{p, seen})
	return p.Path
}

// Resume has the exchange go on with an answer that another member began. seen is how many of its events the client
// has, by slot; nil: none.
func (s *Service) Resume(x *exchange.Exchange, p *actors.AnswerPast, seen []int) {
	s.lasting.remember(x, &past{p, seen})
}

// remember has the exchange serve the request of an earlier answer, until it ends.
func (l *lasting) remember(x *exchange.Exchange, p *past) {
	x.Again(p.ID, p.Body, time.Unix(0, p.At))
	l.mu.Lock()
	l.past[x] = p
	l.mu.Unlock()
	x.Keep(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.past, x)
	})
}

// runOf is the run of an answer that is computed; nil: none is.
func (l *lasting) runOf(key answerKey) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[key]
}

// anew opens the file of an answer that a client asks for anew. One of the same id that goes on for nobody is the same
// client's, which had none of its events when the process ended: it ends. Another connection's goes on, and this one is
// not kept.
func (l *lasting) anew(r *run, asked *actors.AnswerAsked) {
	for range 2 { // the one that goes on may be found late
		if old := l.runOf(r.key); old != nil && old.past != nil && old.past.seen == nil && !old.background {
			l.take(r.x.Context, r.key)
		}
		if r.open(func() *actors.Answer { return l.answers.Begin(asked) }); r.file != nil {
			return
		}
	}
}

// open opens the run's file and enters the run, if it can be opened.
func (r *run) open(file func() *actors.Answer) {
	r.in.opening.Lock()
	defer r.in.opening.Unlock()
	r.file = file()
	if r.records = r.file; r.file != nil {
		r.start()
		r.in.enter(r)
	}
}

// start records what the answer follows from, unless that is known.
func (r *run) start() {
	if r.past == nil || r.past.Begun == nil {
		r.records.Begun(&r.begun)
	}
}

// take ends the run of an answer, if there is one, and waits until what it drew is written.
func (l *lasting) take(ctx context.Context, key answerKey) {
	r := l.runOf(key)
	if r == nil {
		return
	}
	r.x.Take()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// Unfinished finds the answers that an earlier process was computing when it ended. It is called before any request is
// answered; the function that it returns has them go on, each for nobody until its client comes back.
func (s *Service) Unfinished() (goOn func()) {
	if !s.Lasts() {
		return func() {}
	}
	due := s.lasting.answers.Unfinished(mostTries)
	return func() {
		for _, p := range due {
			go s.lasting.again(p.Owner, p.ID)
		}
	}
}

// pastOf returns what is known of the exchange's request from before; nil: it is new.
func (l *lasting) pastOf(x *exchange.Exchange) *past {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.past[x]
}

// recall gives an order what it had when it was served first.
func (l *lasting) recall(x *exchange.Exchange, o *Order) {
	p := l.pastOf(x)
	if p != nil {
		o.Stream = true
	}
	if !o.Stream || l.answers == nil && !x.Carried {
		return
	}
	for i := range o.Prompts {
		o.Prompts[i].Now = x.At
		if p != nil && p.Begun != nil && i < len(p.Begun.Seeds) {
			o.Prompts[i].Sampling.Seed = p.Begun.Seeds[i]
		}
	}
}

// run is a streamed answer that is kept while it is computed, or read again. Its choices share it.
type run struct {
	in         *lasting
	x          *exchange.Exchange
	key        answerKey
	records    recordSink     // file, also where that is nil, or log
	file       *actors.Answer // nil: it is whole, or cannot be written
	log        *carriedLog    // of an answer that is carried; nil: it is not
	past       *past          // nil: it is new
	begun      actors.AnswerBegun
	background bool
	store      bool
	once       sync.Once
	done       chan struct{} // closed at its end

	e     Encoder
	lines bool // an event is a line
	events
}

// events numbers what is sent of an answer.
type events struct {
	mu   sync.Mutex // held while an event is made and sent: their order is that of the tokens in the file
	next []int      // how many events were made, by slot: one for all, or one for each choice, and one for the end
	buf  []byte     // events, as they are encoded
	out  []byte     // the same with numbers
}

// begin begins to keep a streamed answer whose prompts are made; nil: it is not kept.
func (l *lasting) begin(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, e Encoder) (*run, *wire.Fault) {
	if !o.Stream || l.answers == nil && !x.Carried {
		return nil, nil
	}
	r := &run{in: l, x: x, key: answerKey{x.Client, x.ID}, past: l.pastOf(x), background: o.Background, store: o.Store,
		records: (*actors.Answer)(nil), done: make(chan struct{}), e: e, lines: e.Media() != "text/event-stream"}
	r.begun = actors.AnswerBegun{Nonce: rand.Uint64()}
	r.next = make([]int, 1)
	if choices := o.N * len(o.Prompts); choices > 1 {
		r.next = make([]int, choices+1)
	}
	for i := range o.Prompts {
		if err := r.follows(o.Model.Engine, &o.Prompts[i]); err != nil {
			return nil, explain(x, o, err)
		}
	}
	if r.past != nil {
		return r, r.resume()
	}
	if x.Carried {
		return r.carry(), nil
	}
	if l.anew(r, askedBy(rc, x, o)); r.file == nil {
		return nil, nil
	}
	return r, nil
}

// follows adds a prompt to what the answer follows from.
func (r *run) follows(e *actors.Engine, p *actors.Request) (err error) {
	b := &r.begun
	if r.x.Carried {
		b.Model, b.Numbers, err = e.Anywhere(p)
	} else {
		b.Model, err = e.Content(p)
	}
	if err == nil {
		b.Prompts = append(b.Prompts, digestOf(p.PromptIDs(), b.Model))
		b.Seeds = append(b.Seeds, p.Sampling.Seed)
	}
	return err
}

// resume opens the file of an answer that was begun before, if it is to go on. Where a run for nobody was sooner than
// the client, it ends.
func (r *run) resume() *wire.Fault {
	for range 2 {
		otherwise, fault := r.same()
		switch {
		case fault != nil:
			return fault
		case r.x.Carried:
			return r.carryOn(otherwise)
		case r.past.Closed:
			return nil
		}
		if r.open(func() *actors.Answer { return r.in.answers.Resume(r.past.AnswerPast) }); r.file != nil {
			return nil
		}
		if r.past.seen == nil || r.past.Begun == nil { // what is asked of the engine would follow from other seeds
			break
		}
		r.in.take(r.x.Context, r.key)
		p := r.in.answers.Find(r.key.owner, r.key.id)
		if p == nil {
			return wire.Refused(fasthttp.StatusNotFound, "not_found", "the answer is kept no more")
		}
		r.past.AnswerPast = p
	}
	return wire.Unavailable("overloaded", "the answer cannot be gone on with at the moment: another connection does so, "+
		"or its file cannot be written: try again later")
}

// same says whether what the answer was begun with is the same now; else why it cannot go on. otherwise says that its
// numbers are computed otherwise.
func (r *run) same() (otherwise bool, _ *wire.Fault) {
	p := r.past
	if p.seen != nil && len(p.seen) != len(r.next) {
		return false, wire.Invalid("Last-Event-ID", "invalid_value", "Last-Event-ID is of no event of the answer: "+
			"want the id line of one")
	}
	if b := p.Begun; b != nil {
		r.begun.Nonce = b.Nonce
		otherwise = b.Numbers != r.begun.Numbers
		if b.Model != r.begun.Model || !slices.Equal(b.Prompts, r.begun.Prompts) {
			return false, wire.Invalid("", "answer_outdated", "the model, or what it makes of the request, has changed "+
				"since the answer was begun: ask anew")
		}
	}
	return otherwise, nil
}

// digestOf tells the tokens of a prompt, and with what they are computed, from others.
func digestOf(ids []int32, with string) string {
	h := sha256.New()
	h.Write([]byte(with))
	var b [4]byte
	for _, id := range ids {
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (l *lasting) enter(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[r.key] = r
	r.x.Keep(func() { r.end(errUnfinished) }) // what writes the stream may panic
}

// end ends the run; err is why the answer is not whole.
func (r *run) end(err error) {
	switch {
	case r == nil:
	case r.log != nil && err == nil:
		r.log.Closed("")
	case r.file != nil:
		r.once.Do(func() { r.ended(err) })
	}
}

func (r *run) ended(err error) {
	cause := context.Cause(r.x.Context)
	gone := errors.Is(cause, exchange.ErrGone) || errors.Is(cause, exchange.ErrUnread)
	state, alone := actors.AnswerLeft, false
	switch {
	case err == nil:
		r.file.Closed("")
		if state = actors.AnswerDone; r.store {
			state = actors.AnswerSaved
		}
	case errors.Is(cause, exchange.ErrTaken), errors.Is(cause, exchange.ErrStopping), errors.Is(err, actors.ErrClosed),
		r.background && (errors.Is(err, actors.ErrBusy) || errors.Is(err, errQueue)):
		state = actors.AnswerOpen
	case gone && r.background:
		state, alone = actors.AnswerOpen, true
	case !gone && r.background:
		r.file.Closed(err.Error())
		state = actors.AnswerSaved
	}
	r.file.End(state)
	if err != nil && !gone && state == actors.AnswerLeft && slices.Max(r.next) == 0 && r.past == nil { // it was refused
		r.in.answers.Remove(r.key.owner, r.key.id)
	}
	r.in.mu.Lock()
	delete(r.in.runs, r.key)
	r.in.mu.Unlock()
	close(r.done)
	if alone {
		go r.in.again(r.key.owner, r.key.id)
	}
}
