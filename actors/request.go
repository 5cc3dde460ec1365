package actors

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Request asks for an answer. One of Tokens, Chat and Text is the prompt, in this order of precedence.
type Request struct {
	Tokens    []int32     // ids as they are
	Chat      *chat.Input // rendered by the model's template; its BOS, EOS and Now are filled in
	Text      string      // completed as it is, with BOS by the model's rule
	PlainText bool        // control tokens spelled out in Text are plain text

	MaxTokens int // most tokens to generate; 0: as many as the model's settings say, else as the context holds
	Sampling  sample.Params
	Stop      []string // texts that end the answer and are not part of it; nil: those of the model's settings
	IgnoreEOG bool     // end tokens do not end the answer; Sampling should ban them
	Client    string   // whose it is: clients share places and rows, and take turns where masks are to be found
	Salt      uint64   // only prompts of the same salt share the prefix cache
	Thoughts  bool     // what the model thinks comes apart from its text, without the tags around it
	Tools     *Tools   // what it may call; nil: nothing, and what looks like a call is text

	// MostThoughts is how many tokens of thoughts the model may write before it has to end them; 0: any number. It is kept
	// where thoughts end by a mark, as by </think>.
	MostThoughts int

	Form *Form // what the answer must be, thoughts apart; nil: anything

	prompt *prompt       // shared with other choices; nil: of this request alone
	made   *grammar.Form // what its answer is bound to be, compiled; nil: nobody has
	score  bool
}

// Tools are the functions that an answer may call. Calls come apart from its text. Nobody changes them.
type Tools struct {
	List   []tools.Tool
	Must   bool   // the answer is a call, or several; their arguments are kept to the schemas
	Only   string // with Must: of this one; "": any
	Single bool   // at most one call
}

// binds says that some of what an answer says may be bound.
func (t *Tools) binds() bool {
	return t.Must || slices.ContainsFunc(t.List, func(x tools.Tool) bool { return x.Strict })
}

// UserError is a request's fault; its text is meant for the user.
type UserError struct {
	Text    string
	TooLong bool // there are more tokens than the context holds
}

func (e *UserError) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &UserError{Text: fmt.Sprintf(format, args...)} }

// refuse is what a request is told whose form cannot be made.
func (f *Form) refuse(err error) error {
	var user *UserError
	if errors.As(err, &user) {
		return err
	}
	return refuse("%s: %v", f.Field, err)
}

func tooLong(format string, args ...any) error {
	return &UserError{Text: fmt.Sprintf(format, args...), TooLong: true}
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

// prompt is what the model reads. Whoever needs it first makes it, for all choices of the request.
type prompt struct {
	mu       sync.Mutex
	made     bool
	err      error
	tokens   []int32 // nobody changes them
	rendered bool    // by the template: the answer is a text of its own
	opening
}

// opening is what an answer is read with. Nobody changes it.
type opening struct {
	tail  string     // how the prompt ends, behind all that others said
	tools *tools.Set // that may be called; an empty one where nothing may
	form  form       // what the answer is bound to be
}

// PromptTokens is how many tokens the prompt of a prepared request has.
func (r *Request) PromptTokens() int {
	if r.prompt == nil {
		return 0
	}
	return len(r.prompt.tokens)
}

// Bound is what the answer of a prepared request is bound to be: Form, or calls; nil: anything.
func (r *Request) Bound() *Form {
	if r.prompt == nil {
		return r.Form
	}
	return r.prompt.form.of
}

// Bind hands over what Bound is compiled to, which else the request's session makes.
func (r *Request) Bind(made *grammar.Form) { r.made = made }

// Choices returns n requests for answers to the same prompt, which is rendered and encoded once for all of them. The
// i-th has i added to its seed.
func (r Request) Choices(n int) []Request {
	if r.prompt == nil || r.Chat != nil || r.Text != "" { // it was not prepared
		r.prompt = &prompt{}
	}
	all := make([]Request, n)
	for i := range all {
		all[i] = r
		all[i].Sampling.Seed += uint64(i)
	}
	return all
}
