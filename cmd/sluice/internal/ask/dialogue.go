package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

// dialogue is a conversation with a model. A message is added together with its answer, even if that was cut: a request
// that failed leaves the conversation as it was.
type dialogue struct {
	chat.Conversation
	engine   *actors.Engine
	sampling sample.Params // the seed is the first answer's; each further one adds 1, or all would be drawn alike
	most     int           // tokens of an answer; 0: as many as the context holds
	trims    bool          // a full context leaves the oldest messages out, instead of an error
	left     int           // number of messages after the system message that the model no longer sees
	thinks   ThinkFlag
	sees     bool                         // the model takes pictures
	pictures []chat.Part                  // that the next message shows
	form     *constrain.Form              // that answers must have; nil: any
	watch    func(prompted) (done func()) // shows how far a prompt is read, until done; nil: nobody looks
	tally    tally
	earlier  uint64 // answers of earlier processes, whose seeds were used
	keeps    keeping

	change func(ctx context.Context, model string) error // goes on with the model that a word names; nil: with none
}

// keeping is how what was computed of a conversation is written.
type keeping struct {
	slot *actors.Slot     // remembers the conversation's tokens; nil: nobody does
	key  *actors.StateKey // encrypts what is written; nil: nothing is encrypted
}

// tally counts the answers of a session, including those of conversations that were reset.
type tally struct {
	answers uint64
	last    actors.Usage // of the conversation's last answer; zero before it
	sum     actors.Usage // of all
}

func (t *tally) add(u actors.Usage) {
	t.answers++
	t.sum.Prompt += u.Prompt
	t.sum.Cached += u.Cached
	t.sum.Generated += u.Generated
	t.sum.Prefill += u.Prefill
	t.sum.Decode += u.Decode
}

// ask adds a question and the model's answer.
func (d *dialogue) ask(ctx context.Context, text string, show func(piece) error) (reply, error) {
	m := chat.Say("user", text)
	m.Parts, d.pictures = append(d.pictures, m.Parts...), nil
	return d.answer(ctx, with(d.Messages, m), show)
}

// again replaces the last answer by another one.
func (d *dialogue) again(ctx context.Context, show func(piece) error) (reply, error) {
	n := len(d.Messages)
	for n > 0 && d.Messages[n-1].Role == "assistant" {
		n--
	}
	if n == 0 || d.Messages[n-1].Role == "system" {
		return reply{}, errors.New("there is no message to answer again")
	}
	return d.answer(ctx, d.Messages[:n], show)
}

// reply is the result of a request for an answer.
type reply struct {
	finish actors.Finish // Running: it was cut
	kept   bool          // it is part of the conversation, at least its beginning
	left   int           // messages that were left out for it, besides earlier ones
}

// answer generates an answer to messages. If they do not fit, or the context is nearly full, it leaves out the older
// half of them.
func (d *dialogue) answer(ctx context.Context, messages []chat.Message, show func(piece) error) (reply, error) {
	before := d.left
	if size := d.engine.Info.Context; d.trims && d.used() > size-size/8 {
		d.halve(messages)
	}
	for {
		got, err := d.generate(ctx, messages, show)
		var refused *refusal.Error
		if d.trims && errors.As(err, &refused) && refused.TooLong && d.halve(messages) {
			continue
		}
		if err != nil && !got.kept {
			d.left = before
		}
		got.left = d.left - before
		return got, err
	}
}

// halve leaves out the older half of the questions, with their answers, but never the last question.
func (d *dialogue) halve(messages []chat.Message) bool {
	from := d.first(messages)
	var asked []int
	for i := from; i < len(messages); i++ {
		if messages[i].Role == "user" {
			asked = append(asked, i)
		}
	}
	if len(asked) < 2 {
		return false
	}
	d.left += asked[len(asked)/2] - from
	return true
}

// first is the index of the first message that the model sees, not counting the system message.
func (d *dialogue) first(messages []chat.Message) int {
	if len(messages) > 0 && messages[0].Role == "system" {
		return min(1+d.left, len(messages))
	}
	return min(d.left, len(messages))
}

// seen is the messages that the model sees.
func (d *dialogue) seen(messages []chat.Message) []chat.Message {
	if d.left == 0 {
		return messages
	}
	rest := messages[d.first(messages):]
	if messages[0].Role == "system" {
		return append([]chat.Message{messages[0]}, rest...)
	}
	return rest
}

// undo removes the last question and its answer.
func (d *dialogue) undo() bool {
	for n := len(d.Messages) - 1; n >= 0; n-- {
		if d.Messages[n].Role == "user" {
			d.Messages, d.tally.last = d.Messages[:n], actors.Usage{}
			d.left = min(d.left, n)
			return true
		}
	}
	return false
}

// generate generates an answer to messages; both become the conversation. show gets the answer as it comes. An answer
// cut by ctx or an error is kept as far as it came, unless it is empty.
func (d *dialogue) generate(ctx context.Context, messages []chat.Message, show func(piece) error) (reply, error) {
	asked, err := placed(d.engine, d.seen(messages))
	if err != nil {
		return reply{}, err
	}
	r := actors.Request{
		Chat: &chat.Input{Messages: asked, Tools: d.Tools, Documents: d.Documents, AddGenerationPrompt: true,
			Extra: d.thinks.vars()},
		MaxTokens: d.most, Sampling: d.sampling, Thoughts: true, Form: d.form, Slot: d.keeps.slot,
	}
	r.Sampling.Seed += d.earlier + d.tally.answers
	stream, err := d.engine.Generate(r)
	if err != nil {
		return reply{}, err
	}
	said, finish, err := d.listen(ctx, stream, show)
	used := settle(stream)
	if used.Generated > 0 {
		d.tally.add(used)
	}
	kept := err == nil || strings.TrimSpace(said.Text()) != "" || len(said.Parts) > 1 // it has a thought, too
	if kept {
		d.Messages, d.tally.last = with(messages, said), used
	}
	return reply{finish: finish, kept: kept}, err
}

// with appends a message to a copy of the list, as another conversation may share its array.
func with(messages []chat.Message, m chat.Message) []chat.Message {
	return append(messages[:len(messages):len(messages)], m)
}

// listen reads an answer until it ends or is cut.
func (d *dialogue) listen(ctx context.Context, s *actors.Stream, show func(piece) error) (
	chat.Message, actors.Finish, error) {
	var thought, text strings.Builder
	var ev actors.Event
	begun := func() {}
	if d.watch != nil {
		begun = d.watch(s)
	}
	err := s.Next(ctx, &ev)
	begun()
	for ; err == nil; err = s.Next(ctx, &ev) {
		for p, said := range ev.Each() {
			aside := p.Kind == tools.Thought
			if aside {
				thought.Write(said)
			} else {
				text.Write(said)
			}
			if err == nil {
				err = show(piece{string(said), aside})
			}
		}
		if err != nil {
			err = fmt.Errorf("writing the answer: %w", err)
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return spoken(thought.String(), text.String()), ev.Finish, err
}

// spoken is the message for an answer. Thinking is a field of its own for templates, which leave it out of later
// prompts.
func spoken(thought, text string) chat.Message {
	if thought == "" {
		return chat.Say("assistant", text)
	}
	m := chat.Say("assistant", strings.TrimLeft(text, "\r\n"))
	m.Parts = append(m.Parts, chat.Part{Kind: chat.Thought, Text: strings.Trim(thought, "\r\n")})
	return m
}

// settle cancels a request that has not ended, and waits until its counts are complete.
func settle(s *actors.Stream) actors.Usage {
	s.Close()
	var ev actors.Event
	for s.Next(context.Background(), &ev) == nil { //nolint:revive // what was under way when it was given up
	}
	return s.Usage()
}

// full says whether the context is full.
func (d *dialogue) full() bool { return d.used() >= d.engine.Info.Context }

// used is how many positions of the context the conversation took at the last answer, or takes as a prompt after a
// message was taken back.
func (d *dialogue) used() int {
	if d.tally.last.Prompt > 0 || len(d.Messages) == 0 {
		return d.tally.last.Prompt + d.tally.last.Generated
	}
	asked, err := placed(d.engine, d.seen(d.Messages))
	if err != nil {
		return 0 // it cannot be asked of the model either
	}
	r := actors.Request{Chat: &chat.Input{Messages: asked, Tools: d.Tools, Documents: d.Documents}}
	if r, err = d.engine.Prepare(r, nil); err != nil {
		return 0 // likewise
	}
	return r.PromptTokens()
}

// reset forgets the conversation but for its system message.
func (d *dialogue) reset() {
	system, ok := d.system()
	d.Conversation, d.tally.last, d.left = chat.Conversation{}, actors.Usage{}, 0
	if ok {
		d.setSystem(system)
	}
}

func (d *dialogue) system() (text string, ok bool) {
	if len(d.Messages) == 0 || d.Messages[0].Role != "system" {
		return "", false
	}
	return d.Messages[0].Text(), true
}

// setSystem replaces the system message; an empty one removes it.
func (d *dialogue) setSystem(text string) {
	rest := d.Messages
	if _, ok := d.system(); ok {
		rest = rest[1:]
	}
	var messages []chat.Message
	if text != "" {
		messages = append(messages, chat.Say("system", text))
	}
	d.Messages = append(messages, rest...)
}
