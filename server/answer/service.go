package answer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// Service answers for the models of a server.
type Service struct{ directory }

// New makes a service for models, which stay the caller's.
func New(models Models) *Service {
	return &Service{directory{models: models, known: map[string]*Model{}}}
}

// Answer computes what was ordered and has it written. If it returns a fault, nothing was.
func (s *Service) Answer(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, e Encoder) *wire.Fault {
	x.Watch()
	choices, err := open(o)
	if err != nil {
		return explain(x, o, err)
	}
	context.AfterFunc(x.Context, func() { hangUp(choices) }) // at the latest when the answer is complete
	if o.Stream {
		return stream(rc, x, o, e, choices)
	}
	err = each(x.Context, choices, all)
	count(x, choices)
	if err != nil {
		return explain(x, o, err)
	}
	rc.SetContentType("application/json")
	rc.SetBody(e.Whole(nil, choices))
	return nil
}

// open opens a stream of the engine for each choice, or none.
func open(o *Order) ([]*Choice, error) {
	var choices []*Choice
	for i, r := range o.Requests() {
		stream, err := o.Model.Engine.Generate(r)
		if err != nil {
			hangUp(choices)
			return nil, err
		}
		choices = append(choices, &Choice{
			Index: i, Prompt: i / o.N, Probs: r.Sampling.LogProbs >= 0, stream: stream, vocab: o.Model.Engine.Vocab(),
		})
	}
	return choices, nil
}

// hangUp gives up what is not finished.
func hangUp(choices []*Choice) {
	for _, c := range choices {
		c.stream.Close()
	}
}

// stream sends choices as they come. The status is 200 only once a token is there: until then, errors are answered
// as such. All choices are read from the beginning: the engine may work on any of them first, and if nobody read that
// one, it would wait for ever.
func stream(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *Order, e Encoder, choices []*Choice) *wire.Fault {
	var w *exchange.Writer
	ready := make(chan struct{}) // w is set
	begun := make(chan struct{}, len(choices))
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = each(x.Context, choices, func(ctx context.Context, c *Choice) error {
			if err := c.next(ctx); err != nil {
				return err
			}
			begun <- struct{}{}
			select {
			case <-ready:
				return follow(ctx, w, e, c)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	select {
	case <-begun:
	case <-ended:
		count(x, choices)
		return explain(x, o, err)
	}
	x.Stream(rc, e.Media(), e.Fault(nil, wire.Internal(x.ID)), func(writer *exchange.Writer) {
		w = writer
		close(ready)
		<-ended
		count(x, choices)
		var end []byte
		if err != nil {
			fault := explain(x, o, err)
			x.Failed = fault.Text
			end = e.Fault(nil, fault)
		} else {
			end = e.Close(nil, choices)
		}
		w.Send(end) //nolint:errcheck // there is nobody left to tell
	})
	return nil
}

// follow sends one choice of a stream, of which the first event was read.
func follow(ctx context.Context, w *exchange.Writer, e Encoder, c *Choice) error {
	buf := e.Begin(nil, c)
	for {
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

// each works on all choices at once and returns the first error, on which it stops the others.
func each(ctx context.Context, choices []*Choice, work func(context.Context, *Choice) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, c := range choices {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					cancel(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
				}
			}()
			if err := work(ctx, c); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Total adds up the usage of choices. Those of one prompt share it.
func Total(choices []*Choice) (sum actors.Usage) {
	for i, c := range choices {
		sum.Generated += c.Usage.Generated
		if i == 0 || c.Prompt != choices[i-1].Prompt {
			sum.Prompt += c.Usage.Prompt
			sum.Cached += c.Usage.Cached
		}
	}
	return sum
}

// count notes what choices took. Those that were cut are given up first, and waited for: their counts are complete at
// their end.
func count(x *exchange.Exchange, choices []*Choice) {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	hangUp(choices)
	for _, c := range choices {
		c.settle(ctx)
	}
	u := Total(choices)
	x.Prompt, x.Generated = u.Prompt, u.Generated
}

// settling is how long an answer that was given up may take to end.
const settling = time.Second

var errUnfinished = errors.New("the stream ended before the answer did")

// explain finds what to tell the client about an error of the engine; what it must not see goes to the log.
func explain(x *exchange.Exchange, o *Order, err error) *wire.Fault {
	var user *actors.UserError
	switch {
	case errors.As(err, &user):
		code := ""
		if user.TooLong {
			code = "context_length_exceeded"
		}
		return wire.Invalid("", code, "%s", user.Text)
	case errors.Is(err, actors.ErrBusy):
		return wire.Unavailable("overloaded", "%s", actors.ErrBusy.Error())
	case errors.Is(err, actors.ErrClosed), errors.Is(err, exchange.ErrStopping),
		errors.Is(context.Cause(x.Context), exchange.ErrStopping):
		return wire.Stopping()
	case x.Context.Err() != nil: // nobody will read it
		return wire.Refused(exchange.StatusGone, "", "the client has gone")
	}
	x.Log.Error().Err(err).Msg("the engine failed a request")
	if o.Model.Engine.Health() != nil {
		return wire.Unavailable("engine_failed", "the engine has failed and answers nothing any more: GET /health says why")
	}
	return wire.Internal(x.ID)
}
