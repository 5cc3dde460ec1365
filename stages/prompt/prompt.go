package prompt

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Source is what a request says. One of Tokens, Chat and Text is the prompt, in this order of precedence.
type Source struct {
	Tokens []int32     // ids as they are
	Tail   string      // the end of the text of Tokens, from which the answer goes on
	Chat   *chat.Input // rendered by the model's template; its BOS, EOS, Now and Stop are filled in
	Before []int32     // tokens in front of what Chat becomes: an earlier prompt with its answer
	Text   string      // completed as it is, with BOS by the model's rule
	Shown  []chat.Part // pictures whose marks stand in Text
	Plain  bool        // control tokens spelled out in Text are plain text
	Trims  bool        // a conversation that is too long loses its oldest turns
	Answer int         // tokens that the answer may have; 0: any number

	Form  *constrain.Form // what the answer must be, thoughts apart; nil: anything
	Tools *tools.Choice   // what it may call; nil: nothing
}

// Prompt is what the model reads. Nobody changes it.
type Prompt struct {
	Tokens   []int32
	Pictures []Seen // in the order of their tokens
	Rendered bool   // made by the template: the answer is a text of its own
	Left     int    // messages of the conversation that are left out; see Source.Trims
	Opening
}

// Opening is what an answer's parser needs to know of its prompt.
type Opening struct {
	Tail  string          // the prompt's text behind the last message that is not the model's
	Tools *tools.Set      // tools that the answer may call; empty: none
	Bound constrain.Bound // the form that the answer must have
}

// tailOf returns the end of a prompt's text, behind the last message that is not the model's.
func tailOf(prompt string, in *chat.Input) string {
	const most = 64 // bytes, where that message is not found in the text
	from := max(0, len(prompt)-most)
	if in != nil {
		for i := range in.Messages {
			m := &in.Messages[len(in.Messages)-1-i]
			if m.Role == "assistant" {
				continue
			}
			said := strings.TrimSpace(m.Text())
			if at := strings.LastIndex(prompt, said); said != "" && at >= 0 {
				from = at + len(said)
			}
			break
		}
	}
	return strings.Clone(prompt[from:])
}
