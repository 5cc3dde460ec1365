package prompt

import "github.com/sluice-ai/sluice/internal/refusal"

// Room bounds the lengths of prompts, answers and texts, in tokens.
type Room struct {
	Vocab   int // ids are below
	Context int // tokens of a prompt and its answer
	Text    int // tokens of a text that the model scores or embeds

	asked bool // Context is what a request asked for, less than there is
}

// Within returns the room of a request that asks for a context of so many tokens; 0, or more than there is: all of it.
func (r Room) Within(context int) Room {
	if context > 0 && context < r.Context {
		r.Context, r.asked = context, true
	}
	return r
}

// larger says how to get a larger context.
func (r *Room) larger() string {
	if r.asked {
		return "ask for a larger num_ctx"
	}
	return "start with a larger --ctx"
}

// Answer returns how long a prompt and its answer of at most most tokens may be together; most ≤ 0: no bound but the
// context.
func (r *Room) Answer(prompt []int32, most int) (limit int, err error) {
	if err := r.known(prompt); err != nil {
		return 0, err
	}
	if len(prompt) >= r.Context {
		return 0, refusal.TooLong("the prompt has %d tokens and the context %d, which leaves no room for an answer: "+
			"shorten it, or %s", len(prompt), r.Context, r.larger())
	}
	if most <= 0 {
		return r.Context, nil
	}
	return len(prompt) + min(most, r.Context-len(prompt)), nil
}

// Scored checks that a text fits that has no answer, and returns its length.
func (r *Room) Scored(text []int32) (limit int, err error) {
	if err := r.known(text); err != nil {
		return 0, err
	}
	if len(text) > r.Context {
		return 0, refusal.TooLong("there are %d tokens, the context holds %d: ask for a larger one", len(text), r.Context)
	}
	if len(text) > r.Text {
		return 0, refusal.TooLong("there are %d tokens, and this model takes texts of at most %d: shorten it", len(text), r.Text)
	}
	return len(text), nil
}

// known refuses a prompt that is empty, or has ids beyond the vocabulary.
func (r *Room) known(prompt []int32) error {
	if len(prompt) == 0 {
		return refusal.Of("the prompt has no tokens: give it some text")
	}
	for i, id := range prompt {
		if id < 0 || int(id) >= r.Vocab {
			return refusal.Of("token %d of the prompt is %d, the vocabulary has 0 to %d", i, id, r.Vocab-1)
		}
	}
	return nil
}
