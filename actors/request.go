package actors

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/prompt"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Request asks for an answer. One of Tokens, Chat and Text is the prompt, in this order of precedence.
// Wide: a client may say so much of one answer.
type Request struct {
	Tokens    []int32     // ids as they are
	Chat      *chat.Input // rendered by the model's template; its BOS, EOS and Now are filled in
	Before    []int32     // tokens in front of what Chat becomes: an earlier prompt with its answer
	Pictures  []Picture   // in the order of their places in the prompt
	Text      string      // completed as it is, with BOS by the model's rule
	Shown     []chat.Part // pictures whose marks stand in Text
	PlainText bool        // control tokens spelled out in Text are plain text

	Context int  // tokens of the prompt and its answer together; 0, or more than the plan's: as many as that
	Trims   bool // a conversation that is too long loses its oldest turns, and is not refused

	MaxTokens int // most tokens to generate; 0: as many as the model's settings say, else as the context holds
	Sampling  sample.Params
	Stop      []string      // texts that end the answer and are not part of it; nil: those of the model's settings
	IgnoreEOG bool          // end tokens do not end the answer; Sampling should ban them
	Client    string        // name of the client: clients share places and rows, and take turns at masks
	Salt      uint64        // only prompts of the same salt share the prefix cache
	Adapters  []Adapting    // that change the model for this request; nil: those that it has for all, if any; empty: none
	Thoughts  bool          // the model's reasoning comes as parts of its own, without the tags around it
	Tools     *tools.Choice // tools that the model may call; nil: none, and what looks like a call is text

	// MostThoughts is how many tokens of thoughts the model may write before it has to end them; 0: any number. Only
	// models whose thoughts end by a mark, such as </think>, are held to it.
	MostThoughts int

	Form *constrain.Form // the form that the answer must have, without thoughts; nil: any

	// Prediction is a text that the client expects as the answer, or the beginning of it: if Model.Speculate is set,
	// its tokens are guessed. Unguessed turns guessing off for this request. Neither changes a token.
	Prediction string
	Unguessed  bool

	Now   time.Time // the time that a template is told; zero: that of now
	Drawn []int32   // tokens of the answer that an earlier process drew: it goes on behind them
	Drift float64   // state of sampling behind Drawn

	Spent bill.Bill // the request's time before it was opened; zero: it begins with that

	// Promised says that it was told when it would be answered. Later ones do not hold the first of a client's such
	// requests up.
	Promised bool

	ID   string // by which the server and its client know the request; for what is recorded of it
	Tail string // with Tokens: the end of their text, from which the answer goes on; "": it begins anew

	// Explains, if set, is told how each token was chosen, before that is sent. The host draws all of them then.
	Explains func(*sample.Choice)

	Slot *Slot // remembers the text with its answer, which can be saved then; nil: none does

	prompt *shared       // the prompt, once prepared; choices of one request share it
	made   *grammar.Form // Bound's form, compiled; nil: not compiled yet
}

// Slot names the place, among those of its owner, that remembers the text of a request.
type Slot struct {
	Owner string // digest of the client's key, or what tells owners apart; "": who has none
	ID    int    // below Info.Sequences; less than 0: that of the text that it goes on from, or else one is chosen
}

// asked is the part of a request's body that says what was asked, and what follows from it. Its session completes it
// before it submits the first sequence; afterwards nobody changes it, and all actors read this one: sessions, the
// sequences that they submit, and what these ask of others.
type asked struct {
	Request
	terms     batch.Terms // for all its sequences
	opened    time.Time
	predicted []int32 // tokens of Prediction
}

// encode makes the prompt's tokens, and checks that they fit. stop is asked from time to time whether to give up.
func (a *asked) encode(s *spec, stop func() bool) error {
	p, err := s.promptOf(&a.Request, stop)
	if err != nil {
		return err
	}
	t := &a.terms
	if t.Score {
		t.MaxLen, err = s.room.Scored(p.Tokens)
	} else {
		t.MaxLen, err = s.limit(&a.Request, p.Tokens)
	}
	if err != nil {
		return err
	}
	if !a.IgnoreEOG {
		t.Ends = s.vocab.IsEOG
	}
	if text := a.Prediction; text != "" && s.guesses {
		most := token.Options{Most: s.room.Context, Stop: stop}
		if a.predicted, err = s.vocab.Encode(nil, text, most); err != nil {
			a.predicted = nil // it is longer than the answer can be, or nobody waits for it
		}
	}
	a.Chat, a.Text, a.Shown, a.Prediction, a.Pictures = nil, "", nil, "", nil // nobody reads them again
	t.Prompt = len(p.Tokens)
	return nil
}

// look has the prompt's pictures looked at, or all of it read by the model's encoder: their rows are computed, or
// remembered.
func (a *asked) look(s *spec) (err error) {
	if s.ear != nil {
		a.terms.Heard = len(a.prompt.Tokens) - 1
		a.terms.Pictures, err = a.prompt.hear(s.ear)
		return err
	}
	a.terms.Pictures, err = s.eye.look(a.prompt.shown)
	a.terms.Axes = s.axes
	return err
}

// compile compiles the grammar of the answer, if it has one and that was not done yet.
func (a *asked) compile() (_ *grammar.Form, err error) {
	if of := a.prompt.Bound.Of; of != nil && a.made == nil {
		if a.made, err = of.Make(); err != nil {
			return nil, refusal.In(of.Field, err)
		}
	}
	return a.made, nil
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

// shared is the prompt of all choices of a request. The first choice that needs it renders and encodes it.
type shared struct {
	mu   sync.Mutex
	made bool
	err  error
	prompt.Prompt
	shown []shown         // its pictures
	heard []batch.Picture // all of it, as the model's encoder has read it
}

// hear has the encoder read the prompt, once for all choices.
func (p *shared) hear(by *ear) ([]batch.Picture, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard == nil {
		read, err := by.hear(p.Tokens)
		if err != nil {
			return nil, err
		}
		p.heard = []batch.Picture{read}
	}
	return p.heard, nil
}

// promptOf returns the prompt of a request, and makes it if no other choice has. stop is asked from time to time
// whether to give up.
func (s *spec) promptOf(r *Request, stop func() bool) (*shared, error) {
	if r.prompt == nil {
		r.prompt = &shared{}
	}
	p := r.prompt
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.made { // still false after a panic
		p.Prompt, p.err = s.writer.Write(&prompt.Source{Tokens: r.Tokens, Chat: r.Chat, Before: r.Before, Text: r.Text,
			Tail: r.Tail, Shown: r.Shown, Plain: r.PlainText, Trims: r.Trims, Answer: s.most(r), Form: r.Form, Tools: r.Tools},
			s.room.Within(r.Context), r.now(), stop)
		if p.err == nil {
			p.err = s.seeing(r, p)
		}
		p.made = true
	}
	return p, asGone(p.err)
}

func (r *Request) now() time.Time {
	if r.Now.IsZero() {
		return now()
	}
	return r.Now
}

// seeing puts a request's pictures into its prompt, or behind it what an answer to an encoder begins with.
func (s *spec) seeing(r *Request, p *shared) (err error) {
	if s.ear != nil {
		p.Tokens = s.ear.place(p.Tokens)
	}
	if s.eye == nil {
		if len(r.Pictures) > 0 {
			return refusal.Of("%s does not see pictures: ask a model that does, or load it with its mmproj file", s.info.Name)
		}
		return nil
	}
	if len(r.Pictures) == 0 { // tokens that would hold a picture are tokens
		p.shown, err = s.eye.rendered(p.Prompt.Pictures)
		return err
	}
	if p.shown, err = s.eye.read(r.Pictures); err == nil {
		p.Tokens, err = s.eye.place(p.Tokens, p.shown)
	}
	return err
}

// asGone turns the error of a prompt that was stopped, because its client left, into errGone.
func asGone(err error) error {
	if errors.Is(err, prompt.ErrStopped) {
		return errGone
	}
	return err
}

// limit checks that a prompt fits the context, and returns how many tokens it and the answer may have together.
func (s *spec) limit(r *Request, tokens []int32) (int, error) {
	room := s.room.Within(r.Context)
	return room.Answer(tokens, s.most(r))
}

// most is how many tokens an answer may have; 0: as many as the context holds.
func (s *spec) most(r *Request) int { return cmp.Or(max(r.MaxTokens, 0), s.settings.Predict) }

// PromptTokens is how many tokens the prompt of a prepared request has.
func (r *Request) PromptTokens() int {
	if r.prompt == nil {
		return 0
	}
	return len(r.prompt.Tokens)
}

// PromptIDs are the tokens of the prompt of a prepared request, which nobody changes.
func (r *Request) PromptIDs() []int32 {
	if r.prompt == nil {
		return nil
	}
	return r.prompt.Tokens
}

// Left is how many messages of a prepared request's conversation are left out; see Trims.
func (r *Request) Left() int {
	if r.prompt == nil {
		return 0
	}
	return r.prompt.Left
}

// Bound is the form that the answer of a prepared request must have: Form, or that of its calls; nil: any.
func (r *Request) Bound() *constrain.Form {
	if r.prompt == nil {
		return r.Form
	}
	return r.prompt.Bound.Of
}

// Bind sets what Bound compiles to, so that the request's session need not compile it.
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
