package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Request asks for an answer. One of Tokens, Chat and Text is the prompt, in this order of precedence.
type Request struct {
	Tokens    []int32     // ids as they are
	Chat      *chat.Input // rendered by the model's template; its BOS, EOS and Now are filled in
	Text      string      // completed as it is, with BOS by the model's rule
	PlainText bool        // control tokens spelled out in Text are plain text

	MaxTokens int // most tokens to generate; 0: as many as the context holds
	Sampling  sample.Params
	Stop      []string // texts that end the answer and are not part of it
	IgnoreEOG bool     // end tokens do not end the answer; Sampling should ban them
	Salt      uint64   // only prompts of the same salt share the prefix cache
	Thoughts  bool     // what the model thinks comes apart from its text, without the tags around it

	prompt *prompt // shared with other choices; nil: of this request alone
	score  bool
}

// UserError is a request's fault; its text is meant for the user.
type UserError struct {
	Text    string
	TooLong bool // there are more tokens than the context holds
}

func (e *UserError) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &UserError{Text: fmt.Sprintf(format, args...)} }

func tooLong(format string, args ...any) error {
	return &UserError{Text: fmt.Sprintf(format, args...), TooLong: true}
}

// Errors of the engine as a whole.
var (
	ErrBusy   = fmt.Errorf("%d requests are open already: try again later", maxSessions)
	ErrClosed = errors.New("the engine is shutting down")
)

// Engine is the facade of one model of a house. Its methods may be called from any goroutine.
type Engine struct {
	Info   Info
	house  *House
	spec   *spec
	wiring *modelWiring
	kept   modelMemory
	health *health // why this model alone cannot serve
	stats  stats
	loaded atomic.Int64 // bytes of weights that have arrived
	named  atomic.Uint64
}

// House is where the model runs.
func (e *Engine) House() *House { return e.house }

// Plan is where the model's weights lie. Nobody changes it.
func (e *Engine) Plan() *place.Model { return &e.spec.plan }

// Vocab is the model's vocabulary.
func (e *Engine) Vocab() *token.Vocab { return e.spec.vocab }

// Roles are those that messages of a conversation may have.
func (e *Engine) Roles() []string { return e.spec.template.Roles() }

// Generate opens a request. Its answer, and any error of its prompt, comes through the stream, which the caller
// closes.
func (e *Engine) Generate(r Request) (*Stream, error) {
	if err := r.Sampling.Check(e.spec.bound.Vocab); err != nil {
		return nil, refuse("%v", err)
	}
	return e.begin(r)
}

// Score opens a request for the logits of every position of tokens: events with Pos and Logits.
func (e *Engine) Score(tokens []int32) (*Stream, error) {
	return e.begin(Request{Tokens: tokens, score: true})
}

func (e *Engine) begin(r Request) (*Stream, error) {
	if err := e.Health(); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	rec := &record{
		id: fmt.Sprint(e.named.Add(1)), request: r, leave: sync.OnceFunc(e.exit), opened: now(),
		stream: newStream(streamCapacity),
	}
	pid := e.session(rec.id)
	rec.stream.cancel = sync.OnceFunc(func() {
		rec.gone.Store(true)
		if !rec.stream.finished() {
			e.wiring.facade.hangUp.At(pid).Send(&hangUp{errGone})
		}
	})
	e.stats.requests.Add(1)
	e.wiring.facade.open.Send(&open{rec})
	return rec.stream, nil
}

// session is the address of a request's session.
func (e *Engine) session(id string) *actor.PID {
	return e.house.system.Address(e.wiring.sessions.Address.Id + "/" + id)
}

func (e *Engine) enter() error {
	if err := e.house.enter(); err != nil {
		return err
	}
	if !e.wiring.facade.open.Take() {
		e.house.leave()
		return ErrBusy
	}
	return nil
}

func (e *Engine) exit() {
	e.wiring.facade.open.Give()
	e.house.leave()
}

// Health returns nil while the model can serve, else why it cannot.
func (e *Engine) Health() error {
	if err := e.house.health.get(); err != nil {
		return err
	}
	return e.health.get()
}

// gaveUp is called by supervision for an actor that keeps failing and that the model cannot do without.
func (e *Engine) gaveUp(child *actor.PID, reason any) {
	e.fail(fmt.Errorf("actor %s keeps failing: %v", child.Id, reason))
}

// fail makes the model unhealthy, and no other, and ends what it was asked for.
func (e *Engine) fail(err error) {
	if e.health.get() != nil {
		return // it has been said
	}
	e.house.log.Error().Err(err).Str("model", e.Info.Name).Msg("the model cannot go on")
	e.health.set(err)
	e.wiring.hangUpAll.Send(&hangUpAll{err})
}

// Loaded returns how many bytes of weights have arrived, of how many.
func (e *Engine) Loaded() (done, total int64) {
	total = e.spec.bytes()
	if e.spec.layout.InPlace != nil {
		return total, total
	}
	return e.loaded.Load(), total
}

// Close closes the house, with all its models.
func (e *Engine) Close(ctx context.Context) error { return e.house.Close(ctx) }

// Snapshot returns the engine's state in numbers.
func (e *Engine) Snapshot() Snapshot {
	s := Snapshot{
		Running: e.stats.running.Load(), Waiting: e.stats.waiting.Load(), Open: int64(e.wiring.facade.open.Held()),
		Requests: e.stats.requests.Load(), FailedSteps: e.stats.failedSteps.Load(),
		PromptTokens: e.stats.promptTokens.Load(), Generated: e.stats.generated.Load(),
		FirstToken: e.stats.firstToken.load(), BetweenTokens: e.stats.between.load(), Queue: e.stats.queue.load(),
		Steps: e.Steps(), Streamed: e.stats.streamed.Load(), Actors: e.house.system.Status(),
	}
	s.Actors = slices.DeleteFunc(s.Actors, func(a run.Status) bool { return e.house.elsewhere(a.ID, e) })
	s.DeadLetters, s.Unexpected = e.house.system.Faults()
	e.stats.mu.Lock()
	s.KV = e.stats.kv
	e.stats.mu.Unlock()
	return s
}

// Status says what the model's own actors have done.
func (e *Engine) Status() []run.Status {
	return slices.DeleteFunc(e.house.system.Status(), func(a run.Status) bool { return !e.has(a.ID) })
}

// has says whether an actor is the model's own.
func (e *Engine) has(id string) bool {
	path := e.wiring.model.Address.Id
	return id == path || strings.HasPrefix(id, path+"/")
}

// Credits lists the credits that the model's actors count, as they are now.
func (e *Engine) Credits() []run.Credits { return e.wiring.graph.Credits() }

// Steps returns where the time of steps went so far.
func (e *Engine) Steps() Steps { return e.stats.snapshot() }
