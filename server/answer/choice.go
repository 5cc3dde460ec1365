package answer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/promise"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Choice is one of the answers to a request while it is generated. One goroutine owns it.
// Wide: what dialects read of an answer is exported, what it is made from is not.
type Choice struct {
	Index    int     // among all of the request
	Prompt   int     // index of the prompt that it answers
	Probs    bool    // log-probabilities are wanted
	New      News    // what was generated since the last part was sent; if nothing is streamed: all of it
	Pondered int     // tokens up to the end of its thinking, so far
	IDs      []int32 // of the prompt's tokens and the answer's so far, with Order.IDs
	Calls    int     // number of calls that have begun; if Finish is Stopped, all are complete
	Finish   actors.Finish
	Stop     string       // the stop string that ended it; "" if none did
	Usage    actors.Usage // with the first part: the prompt's counts; with Finish: all counts

	causes bool          // Order.Causes
	wall   time.Duration // from the request's arrival to the answer's end, once that is there
	within time.Duration // Order.Within

	predicted *promise.Forecast // nil: not known, or nobody asked
	deadline  time.Time         // zero: there is none

	began   time.Time // when its first event came
	request actors.Request
	forms   *forms
	stream  *actors.Stream                // once it has begun
	begun   atomic.Pointer[actors.Stream] // the same, for other goroutines
	vocab   *token.Vocab
	event   actors.Event
	offset  int // Prob.Offset of the next token
	tokens  int // number of tokens so far
	nonce   uint64
	shown   bool // with lasting answers: its beginning was encoded
	cached  int  // of a choice that is gone on with: what its client was told of Usage.Cached
}

// Piece returns the bytes of a token, which may be a part of a character.
func (c *Choice) Piece(id int32) []byte { return c.vocab.Piece(id) }

// begin waits for a place in the engine and opens its stream. The returned function gives up both; the end of ctx
// calls it too.
func (c *Choice) begin(ctx context.Context, x *exchange.Exchange, m *Model) (end func(), err error) {
	soon, cancel := c.timely(ctx)
	defer cancel()
	if err := m.places.take(soon, x, 1); err != nil {
		return nil, err
	}
	c.request.Spent.Until(time.Now(), bill.Queue)
	if f := c.request.Bound(); f != nil {
		made, err := c.forms.get(ctx, x.Turn, f)
		if err != nil {
			m.places.leave(x, 1)
			return nil, err
		}
		c.request.Bind(made)
		c.request.Spent.Until(time.Now(), bill.Grammar)
	}
	c.request.ID = x.ID
	if c.stream, err = m.Engine.Generate(c.request); err != nil {
		m.places.leave(x, 1)
		return nil, err
	}
	c.begun.Store(c.stream)
	c.request = actors.Request{}
	end = sync.OnceFunc(func() {
		c.stream.Close()
		m.places.leave(x, 1)
	})
	context.AfterFunc(ctx, end)
	return end, nil
}

// next waits for the next part of the answer.
func (c *Choice) next(ctx context.Context) error {
	if err := c.read(ctx); err != nil {
		if errors.Is(err, errDeadline) {
			return c.expire(ctx)
		}
		return err
	}
	c.add(&c.event)
	if c.event.Finish == actors.Running {
		if c.late(time.Now()) {
			c.stream.Close()
			c.settle(ctx)
			c.Finish = actors.Length
		}
		return nil
	}
	c.Finish, c.Stop = c.event.Finish, c.event.Stop
	for { // the counts are complete at the end of the stream
		err := c.stream.Next(ctx, &c.event)
		if errors.Is(err, io.EOF) {
			c.usage()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// usage takes the counts of the stream.
func (c *Choice) usage() {
	if c.Usage = c.stream.Usage(); c.shown {
		c.Usage.Cached = c.cached
	}
	if spent := &c.Usage.Spent; c.causes && spent.Begun() {
		end := time.Now()
		c.wall = end.Sub(spent.Began())
		spent.Until(end, bill.Write)
	}
}

// Timed reports whether the client wants an answer's timings also where its API has none.
func (c *Choice) Timed() bool { return c.causes || c.predicted != nil }

// Timings are the values of the answer's timings object.
func (c *Choice) Timings() *wire.Timings {
	u := &c.Usage
	t := &wire.Timings{Cached: u.Cached, Read: u.Prompt - u.Cached, Written: u.Generated, Reading: u.Prefill,
		Writing: u.Decode, Tried: u.Proposed, Right: u.Accepted}
	if c.causes {
		t.Spent, t.Wall = &u.Spent, c.wall
	}
	if p := c.predicted; p != nil {
		t.FirstToken, t.EachToken = p.First, p.Each
	}
	return t
}

// late reports whether the answer has passed its time limit and ends at a complete line.
func (c *Choice) late(now time.Time) bool {
	if c.began.IsZero() {
		c.began = now
	}
	return c.within > 0 && now.Sub(c.began) > c.within && bytes.IndexByte(c.event.Text, '\n') >= 0
}

// settle reads the rest of an answer that was given up, since its token counts come at the end.
func (c *Choice) settle(ctx context.Context) {
	if c.stream == nil {
		return // it never had a place
	}
	for c.stream.Next(ctx, &c.event) == nil { //nolint:revive // only the counts are wanted
	}
	c.usage()
}

func (c *Choice) read(ctx context.Context) error {
	ctx, cancel := c.timely(ctx)
	defer cancel()
	err := c.stream.Next(ctx, &c.event)
	switch {
	case errors.Is(err, io.EOF):
		return errUnfinished
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// all waits for the whole answer, and charges k for its memory.
func all(ctx context.Context, c *Choice, k *unstreamed) error {
	for c.Finish == actors.Running {
		if err := c.next(ctx); err != nil {
			return err
		}
		if err := k.add(ctx, weight(&c.event, c.Probs)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Choice) add(e *actors.Event) {
	if e.HasToken {
		c.tokens++
		if c.IDs != nil {
			c.IDs = append(c.IDs, e.Token)
		}
	}
	for p, text := range e.Each() {
		c.New.add(p, text, c.newID)
		if p.Kind == tools.Thought {
			c.Pondered = c.tokens
		}
		if p.Kind == tools.Call {
			c.Calls++
		}
	}
	ended := e.Finish == actors.Stopped && c.vocab.IsEOG(e.Token)
	if c.Probs && e.HasToken && !ended {
		c.New.Probs = append(c.New.Probs, Prob{sample.TokenProb{ID: e.Token, LogProb: e.LogProb}, e.Top, c.offset})
		c.offset += utf8.RuneCount(c.Piece(e.Token))
	}
}

// news reports whether something came since the last part was sent.
func (c *Choice) news() bool { return len(c.New.Parts)+len(c.New.Probs) > 0 }

func (c *Choice) sent() { c.New = News{c.New.Parts[:0], c.New.Probs[:0]} }
