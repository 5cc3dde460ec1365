package sluice

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Message is one message of a conversation.
type Message struct {
	Role string // "system", "user", "assistant", or what else the model's template knows
	Text string
}

// System is a message that says how the model is to answer.
func System(text string) Message { return Message{"system", text} }

// User is a message of the person who asks.
func User(text string) Message { return Message{"user", text} }

// Assistant is a message of the model.
func Assistant(text string) Message { return Message{"assistant", text} }

// Request asks for an answer: to Messages, by the model's chat template, or to Prompt, which is gone on with as it is.
// Pointers that are nil leave a setting to the model, or else to what is usual.
type Request struct {
	Messages []Message
	Prompt   string

	MaxTokens int      // most tokens of the answer; 0: until it ends, or the context is full
	Stop      []string // texts that end the answer, and are no part of it
	Schema    string   // a JSON Schema that the answer has to fit; empty: any text
	Think     *bool    // whether the model thinks before it answers, where its template has a choice

	Temperature *float32 // 0 always takes the likeliest token: the same answer each time
	TopK        *int     // the likeliest tokens that are chosen from; 0: all
	TopP        *float32 // the likeliest tokens up to this probability in sum; 1: all
	MinP        *float32 // tokens with at least this share of the best one's probability; 0: all
	Seed        *uint64  // the same seed gives the same answer; nil: another one each time
}

// Finish says how an answer ended.
type Finish string

// The ways in which answers end.
const (
	Stopped Finish = "stop"   // the model ended it, or a text of Request.Stop did
	Length  Finish = "length" // MaxTokens, or the context, is used up
)

// Usage counts the tokens of an answer, and the time that they took.
type Usage struct {
	Prompt    int // tokens of the prompt
	Cached    int // of them, known from earlier requests
	Generated int
	Reading   time.Duration // until the first token, without waiting for others' requests
	Writing   time.Duration // from the first token to the last
}

// Answer is a whole answer.
type Answer struct {
	Text     string
	Thoughts string // of models that think before they answer
	Finish   Finish
	Usage    Usage
}

// Piece is a part of an answer that comes: a few letters, or more. The last one has a Finish, and no text.
type Piece struct {
	Text    string
	Thought bool   // it is a part of the model's thoughts
	Usage   Usage  // so far; the model may be a few tokens ahead
	Finish  Finish // empty: there is more
}

// Generate answers a request. It returns when the answer is whole, or when ctx ends: then with what there is of it, and
// ctx's error.
func (m *Model) Generate(ctx context.Context, r Request) (Answer, error) {
	var a Answer
	var text, thoughts strings.Builder
	var fault error
	for p, err := range m.Stream(ctx, r) {
		if fault = err; err != nil {
			break
		}
		if p.Thought {
			thoughts.WriteString(p.Text)
		} else {
			text.WriteString(p.Text)
		}
		a.Finish, a.Usage = p.Finish, p.Usage
	}
	a.Text, a.Thoughts = text.String(), thoughts.String()
	return a, fault
}

// Stream answers a request piece by piece. An error is the last of what it yields. The request ends with the loop.
func (m *Model) Stream(ctx context.Context, r Request) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		asked, err := m.request(&r)
		if err == nil {
			err = ctx.Err()
		}
		var s *actors.Stream
		if err == nil {
			s, err = m.engine.Generate(asked)
		}
		if err != nil {
			yield(Piece{}, err)
			return
		}
		defer s.Close()
		var e actors.Event
		for {
			switch err := s.Next(ctx, &e); {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Piece{}, err)
				return
			}
			if !pieces(&e, s, yield) {
				return
			}
		}
	}
}

// pieces yields what an event brings.
func pieces(e *actors.Event, s *actors.Stream, yield func(Piece, error) bool) bool {
	u := s.Usage()
	usage := Usage{Prompt: u.Prompt, Cached: u.Cached, Generated: u.Generated, Reading: u.Prefill, Writing: u.Decode}
	for part, text := range e.Each() {
		if len(text) > 0 && !yield(Piece{Text: string(text), Thought: part.Kind == tools.Thought, Usage: usage}, nil) {
			return false
		}
	}
	return e.Finish == actors.Running || yield(Piece{Usage: usage, Finish: Finish(e.Finish)}, nil)
}

// request is a request as the engine takes it.
func (m *Model) request(r *Request) (actors.Request, error) {
	asked := actors.Request{Text: r.Prompt, MaxTokens: r.MaxTokens, Stop: r.Stop, Sampling: r.over(m.engine.Info.Sampling),
		Thoughts: true}
	switch {
	case r.MaxTokens < 0:
		return asked, errors.New("Request.MaxTokens is negative: want a number of tokens, or 0 for no limit")
	case len(r.Messages) > 0 && r.Prompt != "":
		return asked, errors.New("the request has both Messages and a Prompt: give one of them")
	case len(r.Messages) == 0 && r.Prompt == "":
		return asked, errors.New("the request has neither Messages nor a Prompt: give one of them")
	}
	if r.Schema != "" {
		asked.Form = constrain.Source{Kind: constrain.Schema, Texts: []string{r.Schema}}.Form("Request.Schema")
	}
	if len(r.Messages) > 0 {
		in := &chat.Input{AddGenerationPrompt: true, Extra: &jsontext.Object{}}
		for _, said := range r.Messages {
			in.Messages = append(in.Messages, chat.Say(said.Role, said.Text))
		}
		if r.Think != nil {
			chat.Think(in.Extra, *r.Think)
		}
		asked.Chat = in
	}
	return asked, nil
}

// over are the parameters of sampling with what a request says of them.
func (r *Request) over(p sample.Params) sample.Params {
	if p.Seed == 0 {
		p.Seed = rand.Uint64()
	}
	set(&p.Temp, r.Temperature)
	set(&p.TopK, r.TopK)
	set(&p.TopP, r.TopP)
	set(&p.MinP, r.MinP)
	set(&p.Seed, r.Seed)
	return p
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
