package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
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

// Engine runs one model. Its methods may be called from any goroutine.
type Engine struct {
	*core
	Info   Info
	health *health

	named   atomic.Uint64
	mu      sync.Mutex
	closing bool
	empty   chan struct{} // closed when closing and no request is open
	closed  sync.Once
}

// Generate opens a request. Its answer, and any error of its prompt, comes through the stream, which the caller
// closes.
func (e *Engine) Generate(r Request) (*Stream, error) {
	if err := r.Sampling.Check(e.bound.Vocab); err != nil {
		return nil, refuse("%v", err)
	}
	return e.begin(r)
}

// Score opens a request for the logits of every position of tokens: events with Pos and Logits.
func (e *Engine) Score(tokens []int32) (*Stream, error) {
	return e.begin(Request{Tokens: tokens, score: true})
}

func (e *Engine) begin(r Request) (*Stream, error) {
	if err := e.health.get(); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	rec := &record{
		id: fmt.Sprint(e.named.Add(1)), request: r, leave: sync.OnceFunc(e.exit), opened: now(),
		stream: newStream(streamCapacity),
	}
	pid := e.system.Address(e.wiring.places.sessions.Address.Id + "/" + rec.id)
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

func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return ErrClosed
	}
	if !e.wiring.facade.open.Take() {
		return ErrBusy
	}
	return nil
}

func (e *Engine) exit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wiring.facade.open.Give() == 0 && e.closing {
		close(e.empty)
	}
}

// Health returns nil while the engine can serve, else why it cannot.
func (e *Engine) Health() error { return e.health.get() }

// Loaded returns how many bytes of weights have arrived, of how many.
func (e *Engine) Loaded() (done, total int64) {
	for _, g := range e.groups {
		total += g.Bytes
	}
	if e.layout.InPlace != nil {
		return total, total
	}
	return e.loadedBytes.Load(), total
}

// Close stops the engine: no new requests, those that are open may finish until ctx ends and are cut then; after
// them the actors in order, and the memory. It returns ctx's error if requests were cut.
func (e *Engine) Close(ctx context.Context) error {
	var err error
	e.closed.Do(func() { err = e.close(ctx) })
	return err
}

func (e *Engine) close(ctx context.Context) error {
	e.mu.Lock()
	e.closing = true
	if e.wiring.facade.open.Held() == 0 {
		close(e.empty)
	}
	e.mu.Unlock()

	var cut error
	select {
	case <-e.empty:
	case <-ctx.Done():
		cut = ctx.Err()
		e.wiring.facade.hangUpAll.Send(&hangUpAll{ErrClosed})
		<-e.empty
	}
	done := make(chan struct{})
	e.wiring.facade.shutdown.Send(&shutdown{done})
	<-done
	errs := []error{cut, e.system.Stop(e.wiring.places.engine.Address)}
	e.system.Shutdown()
	return errors.Join(append(errs, e.free())...)
}

// free gives back what the tree stood on. No actor is left.
func (e *Engine) free() error {
	return errors.Join(e.backend.Close(), e.slabs.Close(), e.file.Close())
}

// Snapshot returns the engine's state in numbers.
func (e *Engine) Snapshot() Snapshot {
	s := Snapshot{
		Running: e.stats.running.Load(), Waiting: e.stats.waiting.Load(), Open: int64(e.wiring.facade.open.Held()),
		Requests: e.stats.requests.Load(), FailedSteps: e.stats.failedSteps.Load(),
		PromptTokens: e.stats.promptTokens.Load(), Generated: e.stats.generated.Load(),
		Steps: e.Steps(), Actors: e.system.Status(),
	}
	s.DeadLetters, s.Unexpected = e.system.Faults()
	e.stats.mu.Lock()
	s.KV = e.stats.kv
	e.stats.mu.Unlock()
	return s
}

// Steps returns where the time of steps went so far.
func (e *Engine) Steps() Steps { return e.stats.snapshot() }

// Spans returns what was done last, by whom and for how long, in the order in which it ended.
func (e *Engine) Spans() []trace.Span { return e.system.Spans().Snapshot(nil) }
