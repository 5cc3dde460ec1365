package answer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/tracing"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/bill"
)

// Service answers requests for the models of a server.
type Service struct {
	directory
	intake  *exchange.Intake
	lasting lasting
	forms   *forms
	kept    *stock        // bytes of memory for answers that are kept until they are complete
	reading time.Duration // how long a body may take to arrive
	Beat    time.Duration // how often a client that waits for a token hears of its prompt

	// Fetch gets pictures by the addresses that requests name; nil: none are fetched.
	Fetch func(ctx context.Context, url string) ([]byte, error)
	// Sessions keeps texts of slots, with what was computed of them; nil: they are not kept.
	Sessions *actors.Sessions
	// Promises has requests with a deadline go before those of other clients: what was foreseen of them then holds.
	Promises bool
	painting painting
	easels   *stock
	// Folder has the adapters that clients may load; nil: they may not change which there are.
	Folder AdapterFolder
}

// New makes a service for models, which the caller still owns.
func New(models Models, intake *exchange.Intake, reading time.Duration) *Service {
	return &Service{directory: directory{models: models, known: map[string]*Model{}}, intake: intake, forms: newForms(),
		kept: newStock(keptBytes, keptQueue), reading: reading, Beat: beat, easels: newStock(1, queue),
		painting: painting{now: map[string]*Painted{}},
		lasting:  lasting{runs: map[answerKey]*run{}, past: map[*exchange.Exchange]*past{}}}
}

// Body receives the body of a request.
func (s *Service) Body(rc *fasthttp.RequestCtx, x *exchange.Exchange) (Body, *wire.Fault) {
	text, fault := x.Receive(rc, s.intake, s.reading)
	body := NewBody(x.Context, text)
	if s.Fetch != nil {
		body.Fetch = s.fetching(x)
	}
	return body, fault
}

// Answer generates the answers to an order and writes them. If it returns a fault, nothing was written.
func (s *Service) Answer(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, e Encoder) *wire.Fault {
	for _, note := range o.Notes {
		x.Log.Info().Msg(note)
	}
	x.Watch()
	s.lasting.recall(x, o)
	x.Spend(bill.Receive)
	if fault := o.headers(&rc.Request.Header); fault != nil {
		x.Release()
		return fault
	}
	err := s.prepare(x, o)
	x.Spend(bill.Tokenize)
	if err != nil {
		x.Release()
		return explain(x, o, err)
	}
	if fault := s.promise(x, o); fault != nil {
		x.Release()
		return fault
	}
	r, fault := s.lasting.begin(rc, x, o, e)
	x.Release()
	if fault != nil {
		return fault
	}
	choices := s.choicesOf(x, o, r)
	if o.Stream {
		return s.stream(rc, x, o, e, choices, r)
	}
	k := keep(s.kept, x)
	err = each(x, o, choices, func(ctx context.Context, c *Choice) error { return all(ctx, c, k) })
	count(x, o, choices)
	if err != nil {
		return explain(x, o, err)
	}
	x.Whole(rc, "application/json", e.Whole(choices))
	return nil
}

// Count returns the number of tokens of an order's prompts; nothing is computed.
func (s *Service) Count(x *exchange.Exchange, o *Order) (tokens int, fault *wire.Fault) {
	x.Watch()
	err := s.prepare(x, o)
	x.Release()
	if err != nil {
		return 0, explain(x, o, err)
	}
	for i := range o.Prompts {
		tokens += o.Prompts[i].PromptTokens()
	}
	return tokens, nil
}

// SlotOf is the slot of a number that a request asks for; nil, if it is less than 0: any.
func SlotOf(id int) *actors.Slot {
	if id < 0 {
		return nil
	}
	return &actors.Slot{ID: id}
}

// slot is the slot that remembers the text of a request that asks for this one; nil: none does.
func (s *Service) slot(x *exchange.Exchange, asked *actors.Slot) *actors.Slot {
	if s.Sessions == nil {
		return nil
	}
	if asked == nil {
		return &actors.Slot{Owner: x.Owner(), ID: -1}
	}
	return &actors.Slot{Owner: x.Owner(), ID: asked.ID}
}

// prepare renders and tokenizes the prompts, and compiles forms ahead; afterwards the prompts hold only tokens.
func (s *Service) prepare(x *exchange.Exchange, o *Order) error {
	done, err := x.Decode(pictured(o))
	if err != nil {
		return err
	}
	defer done()
	x.Spend(bill.Queue)
	err = x.Large(func(gone func() bool) (err error) {
		for i := range o.Prompts {
			o.Prompts[i].Salt, o.Prompts[i].Client = x.Salt, x.Client
			o.Prompts[i].Slot = s.slot(x, o.Prompts[i].Slot)
			if o.Prompts[i].Adapters == nil {
				o.Prompts[i].Adapters = o.Model.Adapters
			}
			if o.Prompts[i], err = o.Model.Engine.Prepare(o.Prompts[i], gone); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range o.Prompts {
		if left := o.Prompts[i].Left(); left > 0 {
			x.Log.Info().Int("messages", left).Msg("the conversation is too long: its oldest messages are left out")
		}
		if f := o.Prompts[i].Bound(); f != nil && err == nil {
			x.Spend(bill.Tokenize)
			_, err = s.forms.get(x.Context, x.Turn, f)
			x.Spend(bill.Grammar)
		}
	}
	return err
}

// choicesOf returns the choices of an order; the order drops its prompts.
func (s *Service) choicesOf(x *exchange.Exchange, o *Order, kept *run) []*Choice {
	var choices []*Choice
	nonce := rand.Uint64()
	if kept != nil {
		nonce = kept.begun.Nonce
	}
	spent := x.Spent()
	for i, r := range o.Requests() {
		r.Spent = spent
		c := &Choice{
			Index: i, Prompt: i / o.N, Probs: r.Sampling.LogProbs >= 0, within: o.Within, request: r,
			vocab: o.Model.Engine.Vocab(), forms: s.forms, nonce: nonce, causes: o.Causes,
		}
		if o.predicted != nil {
			c.predicted = &o.predicted[i]
		}
		if o.Deadline > 0 {
			c.deadline = x.At.Add(o.Deadline)
		}
		if o.IDs {
			c.IDs = slices.Clone(r.PromptIDs())
		}
		choices = append(choices, c)
	}
	o.Prompts = nil
	return choices
}

// stream sends choices as they are generated. The status is 200 once there is a token, or something to say of a prompt
// that is being read; errors before have their own status. All choices are read from the beginning: the engine may
// compute any of them first, and would wait for ever for one that is not read.
//
// If r is not nil, the answer is kept in a file. An earlier one's tokens are read again first, and its choices that are
// not whole go on.
func (s *Service) stream(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, e Encoder, choices []*Choice, r *run,
) *wire.Fault {
	var w *exchange.Writer
	var k *unstreamed
	if o.Repeats {
		k = keep(s.kept, x)
	}
	if r != nil && r.past != nil {
		s.goOn(rc, x, o, choices, r, k)
		return nil
	}
	ready := make(chan struct{}) // closed when w is set
	begun := make(chan struct{}, len(choices))
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = each(x, o, choices, func(ctx context.Context, c *Choice) error {
			if err := c.next(ctx); err != nil {
				return err
			}
			begun <- struct{}{}
			select {
			case <-ready:
				if r != nil {
					return r.follow(ctx, w, c, k)
				}
				return follow(ctx, w, e, c, k)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	t := newTeller(o, e, choices, s.Beat)
	var said []byte
	reading := true
	for reading && len(said) == 0 {
		select {
		case <-begun:
			reading, said = false, t.whole()
		case <-ended:
			count(x, o, choices)
			r.end(err)
			return explain(x, o, err)
		case <-t.tick:
			said = t.news()
		}
	}
	x.Stream(rc, e.Media(), e.Fault(nil, wire.Internal(x.ID)), func(writer *exchange.Writer) {
		w = writer
		if t.send(w, said); reading {
			t.follow(w, begun, ended)
		}
		close(ready)
		<-ended
		s.finish(w, x, o, e, choices, r, err)
	})
	return nil
}

// finish ends a stream; err is why the answer is not whole.
func (s *Service) finish(w *exchange.Writer, x *exchange.Exchange, o *Order, e Encoder, choices []*Choice, r *run,
	err error,
) {
	count(x, o, choices)
	r.end(err)
	var end []byte
	if err != nil {
		fault := explain(x, o, err)
		x.Failed = fault.Text
		if r.passes(fault) {
			w.BreakOff()
			return
		}
		end = e.Fault(nil, fault)
	} else {
		end = r.close(e.Close(nil, choices))
	}
	w.Send(end) //nolint:errcheck // there is nobody left to tell
}

// goOn streams an answer that was begun before.
func (s *Service) goOn(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, choices []*Choice, r *run,
	k *unstreamed) {
	x.Stream(rc, r.e.Media(), r.e.Fault(nil, wire.Internal(x.ID)), func(w *exchange.Writer) {
		err := r.replay(w, o.Model, choices)
		if err == nil {
			open := slices.DeleteFunc(slices.Clone(choices), func(c *Choice) bool { return c.Finish != actors.Running })
			err = each(x, o, open, func(ctx context.Context, c *Choice) error {
				if err := c.next(ctx); err != nil {
					return err
				}
				return r.follow(ctx, w, c, k)
			})
		}
		s.finish(w, x, o, r.e, choices, r, err)
	})
}

// follow sends one choice of a stream, whose first event was read already. If k is not nil, it pays for the memory
// that the encoder keeps.
func follow(ctx context.Context, w *exchange.Writer, e Encoder, c *Choice, k *unstreamed) error {
	if c.Finish == actors.Running {
		c.Usage = c.stream.Usage()
	}
	buf := e.Begin(nil, c)
	for {
		if k != nil {
			if err := k.add(ctx, weight(&c.event, c.Probs)); err != nil {
				return err
			}
		}
		if c.news() {
			buf = e.Part(buf, c)
			c.sent()
		}
		if c.Finish != actors.Running {
			return w.Send(e.End(buf, c))
		}
		if len(buf) > 0 {
			if err := w.Send(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		if err := c.next(ctx); err != nil {
			return err
		}
	}
}

// each runs work for all choices at once, as they get places. The first error stops the others and is returned.
func each(x *exchange.Exchange, o *Order, choices []*Choice, work func(context.Context, *Choice) error) error {
	ctx, cancel := context.WithCancelCause(x.Context)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, c := range choices {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					cancel(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
				}
			}()
			end, err := c.begin(ctx, x, o.Model)
			if err == nil {
				defer end()
				err = work(ctx, c)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Total sums the usage of choices. Choices of one prompt share its tokens.
func Total(choices []*Choice) (sum actors.Usage) {
	for i, c := range choices {
		sum.Generated += c.Usage.Generated
		sum.Proposed += c.Usage.Proposed
		sum.Accepted += c.Usage.Accepted
		if i == 0 || c.Prompt != choices[i-1].Prompt {
			sum.Prompt += c.Usage.Prompt
			sum.Cached += c.Usage.Cached
		}
	}
	return sum
}

// count records what choices took. It waits for those that were cut, whose counts are complete only at their end.
func count(x *exchange.Exchange, o *Order, choices []*Choice) {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	for _, c := range choices {
		c.settle(ctx)
		tracing.Computed(x.Context, &tracing.Answer{Model: o.Model.Name, Prompt: c.Usage.Prompt, Cached: c.Usage.Cached,
			Generated: c.Usage.Generated, Queue: c.Usage.Queue, Prefill: c.Usage.Prefill, Decode: c.Usage.Decode,
			Finish: string(c.Finish), Spent: &c.Usage.Spent})
	}
	u := Total(choices)
	x.Prompt, x.Generated = u.Prompt, u.Generated
}

// settling bounds how long an answer that was given up may take to end.
const settling = time.Second

var errUnfinished = errors.New("the stream ended before the answer did")

// explain returns the fault that a client is told for an error of the engine; details that the client must not see go
// to the log.
func explain(x *exchange.Exchange, o *Order, err error) *wire.Fault {
	var user *refusal.Error
	var form *formFault
	switch {
	case errors.As(err, &form):
		return wire.Invalid(form.field, "invalid_value", "%v", form)
	case errors.As(err, &user):
		code := ""
		if user.TooLong {
			code = "context_length_exceeded"
		}
		return wire.Invalid("", code, "%s", user.Text)
	case errors.Is(err, actors.ErrBusy), errors.Is(err, actors.ErrAdapters), errors.Is(err, errQueue),
		errors.Is(err, errKept),
		errors.Is(err, exchange.ErrCrowded):
		return wire.Unavailable("overloaded", "%v", err)
	case errors.Is(err, errDeadline):
		return wire.Unavailable("deadline_missed", "%v", err)
	case errors.Is(err, errTooMuch):
		return wire.Invalid("", "answer_too_large", "%v", err)
	case errors.Is(err, actors.ErrClosed), errors.Is(err, exchange.ErrStopping),
		errors.Is(context.Cause(x.Context), exchange.ErrStopping):
		return wire.Stopping()
	case x.Context.Err() != nil: // nobody will read it
		return wire.Gone()
	}
	x.Log.Error().Err(err).Msg("the engine failed a request")
	if errors.Is(err, supply.ErrFailed) {
		return wire.Unavailable("engine_failed", "what reads the weights of the picture's model has failed, and this picture with "+
			"it: try again, it begins anew then; the server's log says why")
	}
	if o.Model != nil && o.Model.Engine.Health() != nil {
		return wire.Unavailable("engine_failed", "the engine has failed, and this answer with it: try again, the model is "+
			"loaded again if that is possible; GET /health says if it is not")
	}
	return wire.Internal(x.ID)
}
