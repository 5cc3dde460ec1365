package openai

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
	"github.com/sluice-ai/sluice/stages/sample"
)

// API answers for one engine.
type API struct {
	Engine *actors.Engine
	Model  string // the name clients see

	created int64
	model   model
}

// New makes the API of an engine; name is how clients know its model.
func New(e *actors.Engine, name string) *API {
	a := &API{Engine: e, Model: name, created: time.Now().Unix()}
	usual := sync.OnceValue(func() *sample.Breakers { return a.textBreakers([]string{"\n", ":", `"`, "*"}) })
	a.model = model{
		sampling: e.Info.Sampling, vocab: e.Info.Vocab, endTokens: e.Vocab().EOG(),
		breakers: func(texts []string) *sample.Breakers {
			if texts == nil {
				return usual()
			}
			return a.textBreakers(texts)
		},
	}
	return a
}

// shape writes choices as one of the endpoints has them. What it writes starts behind the common head of an
// answer and is one element of "choices".
type shape interface {
	first(dst []byte, c *choice) []byte // stream: before the first text; may be nothing
	part(dst []byte, c *choice) []byte  // stream: what came since the last part
	last(dst []byte, c *choice) []byte  // stream: the end
	whole(dst []byte, c *choice) []byte // no stream: all of it
}

// answer computes what was ordered and writes it.
func (a *API) answer(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *order, h head, s shape) {
	x.Watch()
	choices, err := a.open(o)
	if err != nil {
		Write(rc, a.explain(x, err))
		return
	}
	context.AfterFunc(x.Context, func() { hangUp(choices) }) // at the latest when the answer is complete
	if o.stream {
		a.stream(rc, x, o, h, s, choices)
		return
	}
	if err := each(x.Context, choices, all); err != nil {
		Write(rc, a.explain(x, err))
		return
	}
	rc.SetContentType("application/json")
	rc.SetBody(h.whole(s, choices))
	count(x, usageOf(choices))
}

// open opens a stream of the engine for each choice, or none.
func (a *API) open(o *order) ([]*choice, error) {
	var choices []*choice
	for i, r := range o.requests() {
		stream, err := a.Engine.Generate(r)
		if err != nil {
			hangUp(choices)
			return nil, err
		}
		choices = append(choices, newChoice(i, i/o.n, o, stream, a.Engine.Vocab()))
	}
	return choices, nil
}

// hangUp gives up what is not finished.
func hangUp(choices []*choice) {
	for _, c := range choices {
		c.stream.Close()
	}
}

// stream sends choices as they come. The status is 200 only once a token is there: until then, errors are answered
// as such. All choices are read from the beginning: the engine may work on any of them first, and if nobody read that
// one, it would wait for ever.
func (a *API) stream(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *order, h head, s shape, choices []*choice) {
	var w *exchange.Writer
	ready := make(chan struct{}) // w is set
	begun := make(chan struct{}, len(choices))
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = each(x.Context, choices, func(ctx context.Context, c *choice) error {
			if err := c.next(ctx); err != nil {
				return err
			}
			begun <- struct{}{}
			select {
			case <-ready:
				return follow(ctx, w, &h, s, c)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	select {
	case <-begun:
	case <-ended:
		Write(rc, a.explain(x, err))
		return
	}
	x.Stream(rc, Internal(x.ID).event(), func(writer *exchange.Writer) {
		w = writer
		close(ready)
		<-ended
		a.finish(x, w, o, &h, choices, err)
	})
}

// finish sends the end of a stream.
func (a *API) finish(x *exchange.Exchange, w *exchange.Writer, o *order, h *head, choices []*choice, err error) {
	var end []byte
	u := usageOf(choices)
	count(x, u)
	switch {
	case err != nil:
		end = a.explain(x, err).event()
	case o.usage:
		end = h.usage(end, u)
		fallthrough
	default:
		end = append(end, "data: [DONE]\n\n"...)
	}
	w.Send(end) //nolint:errcheck // there is nobody left to tell
}

// follow sends one choice of a stream, of which the first event was read.
func follow(ctx context.Context, w *exchange.Writer, h *head, s shape, c *choice) error {
	buf := h.event(nil, s.first, c)
	for {
		if c.news() {
			buf = h.event(buf, s.part, c)
			c.sent()
		}
		if c.finish != actors.Running {
			return w.Send(h.end(buf, s, c))
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
func each(ctx context.Context, choices []*choice, work func(context.Context, *choice) error) error {
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

// usageOf adds up choices. Those of one prompt share it.
func usageOf(choices []*choice) actors.Usage {
	var sum actors.Usage
	for i, c := range choices {
		sum.Generated += c.usage.Generated
		if i == 0 || c.prompt != choices[i-1].prompt {
			sum.Prompt += c.usage.Prompt
			sum.Cached += c.usage.Cached
		}
	}
	return sum
}

func count(x *exchange.Exchange, u actors.Usage) { x.Prompt, x.Generated = u.Prompt, u.Generated }

var errUnfinished = errors.New("the stream ended before the answer did")
