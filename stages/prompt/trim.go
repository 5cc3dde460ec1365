package prompt

import (
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/chat"
)

// fits says whether a prompt has at most most tokens. One that cannot be made for another reason than its length does:
// no shorter one is looked for.
func fits(p Prompt, err error, most int) bool {
	var refused *refusal.Error
	if err != nil {
		return !errors.As(err, &refused) || !refused.TooLong
	}
	return len(p.Tokens) <= most
}

// trimmed makes the prompt of a conversation that is too long: without as few of its oldest turns, of those at which it
// is cut (see cutsOf), as leaves an answer the tokens that it may have, or a quarter of the context if that is less.
// Turns begin with a message of the user, so that calls stay together with their results. System messages stay, and so
// does the last turn, for which any room is enough.
func (w *Writer) trimmed(from *Source, room Room, now time.Time, stop func() bool) (Prompt, error) {
	turns, answer := turnsOf(from.Chat.Messages), max(room.Context/4, 1)
	if from.Answer > 0 {
		answer = min(answer, from.Answer)
	}
	shorter := func(turn int) (Prompt, error) {
		in := *from.Chat
		in.Messages = since(in.Messages, turns[turn])
		part := *from
		part.Chat = &in
		p, err := w.write(&part, room, now, stop)
		p.Left = len(from.Chat.Messages) - len(in.Messages)
		return p, err
	}
	if len(turns) < 2 {
		return w.write(from, room, now, stop)
	}
	var found Prompt // of the shortest cut that fits, so far
	var fault error
	cuts := cutsOf(from.Chat.Messages, turns, room.Context) // a quarter of it, at four bytes a token
	if sort.Search(len(cuts), func(i int) bool {
		p, err := shorter(cuts[i])
		ok := fits(p, err, room.Context-answer)
		if ok {
			found, fault = p, err
		}
		return ok
	}) < len(cuts) {
		return found, fault
	}
	return shorter(len(turns) - 1)
}

// cutsOf lists the turns, but the first and the last, at which a conversation may be cut: those that begin another
// stride of bytes, and all after the last of these. A conversation that grows is cut at the same turn for a while, so
// that what is left of it is found in the prefix cache; were it cut at the first turn that fits, each request would
// move it.
func cutsOf(messages []chat.Message, turns []int, stride int) (all []int) {
	bytes, before, strides, last := 0, 0, 0, 0
	for i, turn := range turns[:len(turns)-1] {
		for _, m := range messages[before:turn] {
			bytes += len(m.Text())
		}
		before = turn
		if past := bytes / max(stride, 1); past > strides {
			strides, last = past, i
			all = append(all, i)
		}
	}
	for i := last + 1; i < len(turns)-1; i++ {
		all = append(all, i)
	}
	return all
}

// turnsOf lists where the turns of a conversation begin.
func turnsOf(messages []chat.Message) (all []int) {
	for i := range messages {
		if messages[i].Role == "user" {
			all = append(all, i)
		}
	}
	return all
}

// since returns a conversation from a message on, with the system messages before it.
func since(messages []chat.Message, first int) []chat.Message {
	before := slices.Clone(messages[:first])
	before = slices.DeleteFunc(before, func(m chat.Message) bool { return m.Role != "system" && m.Role != "developer" })
	return append(before, messages[first:]...)
}
