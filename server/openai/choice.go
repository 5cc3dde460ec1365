package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// choice is one of the answers to a request, as it comes. One goroutine owns it.
type choice struct {
	index  int // in "choices"
	prompt int // which one it answers
	stream *actors.Stream
	vocab  *token.Vocab
	event  actors.Event

	// What came since the last sent.
	text    []byte
	thought []byte
	probs   []tokenProb

	within  bool // the last piece was thinking
	leading bool // white space is left out until there is something else
	wants   bool // log-probabilities are wanted
	offset  int  // in the text, of the next token with a log-probability
	finish  actors.Finish
	usage   actors.Usage // complete with finish
}

// tokenProb is a token with its log-probability and the likeliest ones in its place.
type tokenProb struct {
	sample.TokenProb
	top    []sample.TokenProb
	offset int // in characters of the text
}

func newChoice(index, prompt int, o *order, stream *actors.Stream, vocab *token.Vocab) *choice {
	return &choice{index: index, prompt: prompt, stream: stream, vocab: vocab, wants: o.probs}
}

// next waits for the next part of the answer.
func (c *choice) next(ctx context.Context) error {
	if err := c.read(ctx); err != nil {
		return err
	}
	c.add(&c.event)
	if c.event.Finish == actors.Running {
		return nil
	}
	c.finish = c.event.Finish
	for { // the counts are complete at the end of the stream
		err := c.stream.Next(ctx, &c.event)
		if errors.Is(err, io.EOF) {
			c.usage = c.stream.Usage()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *choice) read(ctx context.Context) error {
	err := c.stream.Next(ctx, &c.event)
	switch {
	case errors.Is(err, io.EOF):
		return errUnfinished
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// all waits for the whole answer.
func all(ctx context.Context, c *choice) error {
	for c.finish == actors.Running {
		if err := c.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *choice) add(e *actors.Event) {
	c.thought = c.label(c.thought, e.Thought, true)
	c.text = c.label(c.text, e.Text, false)
	ended := e.Finish == actors.Stopped && c.vocab.IsEOG(e.Token)
	if c.wants && e.HasToken && !ended {
		c.probs = append(c.probs, tokenProb{sample.TokenProb{ID: e.Token, LogProb: e.LogProb}, e.Top, c.offset})
		c.offset += utf8.RuneCount(c.vocab.Piece(e.Token))
	}
}

// label adds a piece without the white space that sets thinking apart from its tags and the answer.
func (c *choice) label(to, piece []byte, thinking bool) []byte {
	if len(piece) == 0 {
		return to
	}
	if thinking != c.within {
		c.within, c.leading = thinking, true
	}
	if c.leading {
		piece = bytes.TrimLeftFunc(piece, unicode.IsSpace)
		c.leading = len(piece) == 0
	}
	return append(to, piece...)
}

// news says that something came since the last sent.
func (c *choice) news() bool { return len(c.text)+len(c.thought)+len(c.probs) > 0 }

func (c *choice) sent() { c.text, c.thought, c.probs = c.text[:0], c.thought[:0], c.probs[:0] }
