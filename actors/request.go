package actors

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/prompt"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Request asks for an answer. One of Tokens, Chat and Text is the prompt, in this order of precedence.
// Wide: a client may say so much of one answer.
type Request struct {
	Tokens    []int32     // ids as they are
	Chat      *chat.Input // rendered by the model's template; its BOS, EOS and Now are filled in
	Text      string      // completed as it is, with BOS by the model's rule
	PlainText bool        // control tokens spelled out in Text are plain text

	MaxTokens int // most tokens to generate; 0: as many as the model's settings say, else as the context holds
	Sampling  sample.Params
	Stop      []string      // texts that end the answer and are not part of it; nil: those of the model's settings
	IgnoreEOG bool          // end tokens do not end the answer; Sampling should ban them
	Client    string        // whose it is: clients share places and rows, and take turns where masks are to be found
	Salt      uint64        // only prompts of the same salt share the prefix cache
	Thoughts  bool          // what the model thinks comes apart from its text, without the tags around it
	Tools     *tools.Choice // what it may call; nil: nothing, and what looks like a call is text

	// MostThoughts is how many tokens of thoughts the model may write before it has to end them; 0: any number. It is kept
	// where thoughts end by a mark, as by </think>.
	MostThoughts int

	Form *constrain.Form // what the answer must be, thoughts apart; nil: anything

	// Prediction is a text that the client expects as the answer, or as much of it as there is: it is guessed, where
	// Model.Speculate is. Unguessed has nothing guessed. Neither changes a token.
	Prediction string
	Unguessed  bool

	prompt *shared       // shared with other choices; nil: of this request alone
	made   *grammar.Form // what its answer is bound to be, compiled; nil: nobody has
	score  bool
}

// Errors of the engine as a whole.
var (
	ErrBusy   = fmt.Errorf("%d requests are open already: try again later", maxSessions)
	ErrClosed = errors.New("the engine is shutting down")
)

// errGone ends a request whose client has left.
var errGone = errors.New("the client has gone")

// maxSessions is how many requests of a model may be open, queued ones included; more are answered ErrBusy.
const maxSessions = 256

// shared is the prompt of all choices of a request. Whichever needs it first makes it.
type shared struct {
	mu   sync.Mutex
	made bool
	err  error
	prompt.Prompt
}

// promptOf is the prompt of a request; stop is asked from time to time whether to give up.
func (s *spec) promptOf(r *Request, stop func() bool) (*shared, error) {
	if r.prompt == nil {
		r.prompt = &shared{}
	}
	p := r.prompt
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made { // nor is it after a panic
		p.Prompt, p.err = s.writer.Write(&prompt.Source{Tokens: r.Tokens, Chat: r.Chat, Text: r.Text, Plain: r.PlainText,
			Form: r.Form, Tools: r.Tools}, s.room.Context, now(), stop)
		p.made = true
	}
	return p, asGone(p.err)
}

// asGone is the error of a prompt that was stopped because its client left.
func asGone(err error) error {
	if errors.Is(err, prompt.ErrStopped) {
		return errGone
	}
	return err
}

// limit checks that a prompt fits, and returns how long it and the answer may be together.
func (s *spec) limit(r *Request, tokens []int32) (int, error) {
	if r.score {
		return s.room.Scored(tokens)
	}
	return s.room.Answer(tokens, cmp.Or(max(r.MaxTokens, 0), s.settings.Predict))
}

// PromptTokens is how many tokens the prompt of a prepared request has.
func (r *Request) PromptTokens() int {
	if r.prompt == nil {
		return 0
	}
	return len(r.prompt.Tokens)
}

// Bound is what the answer of a prepared request is bound to be: Form, or calls; nil: anything.
func (r *Request) Bound() *constrain.Form {
	if r.prompt == nil {
		return r.Form
	}
	return r.prompt.Bound.Of
}

// Bind hands over what Bound is compiled to, which else the request's session makes.
func (r *Request) Bind(made *grammar.Form) { r.made = made }

// Choices returns n requests for answers to the same prompt, which is rendered and encoded once for all of them. The
// i-th has i added to its seed.
func (r Request) Choices(n int) []Request {
	if r.prompt == nil || r.Chat != nil || r.Text != "" { // it was not prepared
		r.prompt = &shared{}
	}
	all := make([]Request, n)
	for i := range all {
		all[i] = r
		all[i].Sampling.Seed += uint64(i)
	}
	return all
}
