package prompt

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// ErrStopped is the error of a prompt whose making was stopped.
var ErrStopped = errors.New("the prompt is not wanted any more")

// Writer writes prompts for a model. Nobody changes it.
type Writer struct {
	Vocab    *token.Vocab
	Template *chat.Template
	System   string         // the system message of conversations that have none
	Standing []chat.Message // messages that every conversation begins with
	Syntax   *tools.Syntax  // how the model thinks and calls, as the template shows it
	Calls    *tools.Form    // how it writes calls; nil: that is not known
	Eyes     *Eyes          // how its prompts have pictures; nil: it reads text only
}

// Write makes the prompt of a request that has so much room. now is the time that a template reads; stop, which may be
// nil, says whether the prompt is not wanted any more. Faults of the request are refusal.Error.
func (w *Writer) Write(from *Source, room Room, now time.Time, stop func() bool) (Prompt, error) {
	p, err := w.write(from, room, now, stop)
	if from.Chat != nil && from.Tokens == nil && from.Trims && !fits(p, err, room.Context-1) {
		return w.trimmed(from, room, now, stop)
	}
	return p, err
}

// write makes a prompt of all that a request says.
func (w *Writer) write(from *Source, room Room, now time.Time, stop func() bool) (Prompt, error) {
	if from.Tokens != nil {
		return w.equip(Prompt{Tokens: from.Tokens, Opening: Opening{Tail: from.Tail}}, from)
	}
	text, options := from.Text, token.Options{AddSpecial: true, ParseSpecial: !from.Plain}
	var before []int32
	messages := []chat.Message{{Parts: from.Shown}}
	if from.Chat != nil {
		var err error
		messages = from.Chat.Messages
		if text, err = w.render(*from.Chat, from.Before != nil, now, stop); err != nil {
			return Prompt{}, err
		}
		// A template may spell out the BOS that encoding would add: there must be one, at the beginning of all.
		bos := w.Vocab.BOSText()
		again := bos != "" && strings.HasPrefix(text, bos)
		if again && from.Before != nil {
			text = text[len(bos):]
		}
		options = token.Options{AddSpecial: !again && from.Before == nil, ParseSpecial: true}
		before = from.Before
	}
	options.Most, options.Stop = room.Context, stop
	ids, seen, err := w.encode(slices.Clone(before), text, messages, options)
	var long *token.TooLong
	var refused *refusal.Error
	switch {
	case errors.As(err, &long):
		return Prompt{}, refusal.TooLong("the prompt has %d bytes, which are more than %d tokens, and the context holds %d: "+
			"shorten it, or %s", long.Bytes, long.Least-1, room.Context, room.larger())
	case errors.Is(err, token.ErrStopped):
		return Prompt{}, ErrStopped
	case errors.As(err, &refused):
		return Prompt{}, err
	case err != nil:
		return Prompt{}, refusal.Of("the prompt cannot be put into tokens: %v", err)
	}
	opening := Opening{Tail: tailOf(text, from.Chat)}
	return w.equip(Prompt{Tokens: ids, Pictures: seen, Rendered: from.Chat != nil, Opening: opening}, from)
}

// equip adds to a prompt the tools that its answer may call, and the form that it must have.
func (w *Writer) equip(p Prompt, from *Source) (Prompt, error) {
	p.Bound.Of = from.Form
	choice := from.Tools
	if choice == nil {
		choice = &tools.Choice{}
	}
	var err error
	if p.Tools, err = tools.NewSet(choice.List); err != nil {
		return Prompt{}, refusal.Of("tools: %v", err)
	}
	switch {
	case !choice.Binds():
		return p, nil
	case choice.Must && from.Form != nil:
		return Prompt{}, refusal.Of("the answer is to be a call, and of another form too: drop one of both")
	case w.Calls == nil && choice.Must:
		return Prompt{}, refusal.Of("the chat template of this model does not show how it writes calls: none can be forced, " +
			"let the model choose (tool_choice auto)")
	case w.Calls == nil || !choice.Must && (from.Form != nil || !w.Syntax.Opens(w.Calls.Open)):
		return p, nil
	}
	mark := w.Calls.Thought[0]
	thinks := mark != "" && !strings.Contains(p.Tail, strings.TrimSpace(mark)) && choice.Must
	form := constrain.Calls(w.Calls, choice, thinks)
	p.Bound = constrain.Bound{Of: form, Calls: true, Lazy: !choice.Must, Headings: true}
	return p, nil
}

// Render turns a conversation into the text of a prompt; see Write.
func (w *Writer) Render(in chat.Input, now time.Time, stop func() bool) (string, error) {
	return w.render(in, false, now, stop)
}

// render is Render; in a conversation that goes on, what the model's settings put in front was said before.
func (w *Writer) render(in chat.Input, goesOn bool, now time.Time, stop func() bool) (string, error) {
	in.BOS, in.EOS, in.Now, in.Stop = w.Vocab.BOSText(), w.Vocab.EOSText(), now, stop
	if !goesOn {
		in.Messages = w.whole(in.Messages)
	}
	text, err := w.Template.Render(in)
	switch {
	case err != nil && stop != nil && stop():
		return "", ErrStopped
	case err != nil:
		return "", refusal.Of("the model's chat template refused the conversation: %v", err)
	}
	return text, nil
}

// whole puts in front of a conversation what the model's settings say: the system message, unless the conversation
// has its own, and the standing messages.
func (w *Writer) whole(said []chat.Message) []chat.Message {
	own := len(said) > 0 && said[0].Role == "system"
	if len(said) == 0 || len(w.Standing) == 0 && (own || w.System == "") {
		return said
	}
	var all []chat.Message
	switch {
	case own:
		all, said = append(all, said[0]), said[1:]
	case w.System != "":
		all = append(all, chat.Say("system", w.System))
	}
	return append(append(all, w.Standing...), said...)
}
