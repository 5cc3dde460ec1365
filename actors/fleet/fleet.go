package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/stages/swap"
)

// Engine is a model that runs.
type Engine interface {
	comparable
	Health() error                   // why it cannot go on; nil: it can
	Close(ctx context.Context) error // lets what is open finish until ctx ends
}

// Source is where models come from. Its methods are called by several goroutines.
type Source[E Engine] interface {
	// Names lists the models that can be asked for, the first one first. They may change.
	Names() []string
	// Measure finds out what a model takes, without loading it: never more than there is at all.
	Measure(ctx context.Context, name string) (swap.Room, error)
	// Load runs a model, within room: what was measured. What is there of it, of how much, is told from time to time.
	Load(ctx context.Context, name string, room swap.Room, progress func(done, total int64)) (E, error)
}

// Errors of those who ask for a model.
var (
	ErrUnknown = errors.New("no such model")
	ErrClosed  = errors.New("the engine is shutting down")
	ErrFull    = swap.ErrFull

	errCrowded = errors.New("there is no room")
)

// patience is how long a model that leaves may take to close. Nobody uses it, so there is nothing to finish.
const patience = 10 * time.Second

// Fleet is models that are loaded when they are asked for. Its methods may be called from any goroutine.
type Fleet[E Engine] struct {
	source Source[E]
	log    zerolog.Logger
	base   context.Context // of all that is loaded
	cut    context.CancelFunc
	work   sync.WaitGroup // what is measured, loaded and unloaded
	one    sync.Mutex     // measures: it takes memory of its own

	mu      sync.Mutex
	state   *swap.State
	closed  bool
	running map[string]E
	loads   map[string]*load
	asked   map[swap.Ticket]chan error // by who waits; has room for the answer
	last    swap.Ticket
	timer   *time.Timer
}

// load is a model on its way.
type load struct{ done, total atomic.Int64 }

// New makes a fleet of which nothing is loaded.
func New[E Engine](source Source[E], limits swap.Limits, log zerolog.Logger) *Fleet[E] {
	f := &Fleet[E]{
		source: source, log: log, state: swap.New(limits), running: map[string]E{}, loads: map[string]*load{},
		asked: map[swap.Ticket]chan error{},
	}
	f.base, f.cut = context.WithCancel(context.Background())
	return f
}

// Names lists the models that can be asked for, the first one first.
func (f *Fleet[E]) Names() []string { return f.source.Names() }

// Engine is the model of that name, if it is loaded now; else the zero value.
func (f *Fleet[E]) Engine(name string) (e E) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[name]
}

// Status is where a model is.
type Status struct {
	Phase          swap.Phase
	Using, Waiting int   // requests
	Done, Total    int64 // bytes of weights, while it is loaded
}

// Status says where a model is.
func (f *Fleet[E]) Status(name string) (s Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Phase = f.state.Phase(name)
	s.Using, s.Waiting = f.state.Users(name)
	if l := f.loads[name]; l != nil {
		s.Done, s.Total = l.done.Load(), l.total.Load()
	}
	return s
}

// Use waits until a model is loaded. It stays until done is called, which may be repeated.
func (f *Fleet[E]) Use(ctx context.Context, name string) (e E, done func(), err error) {
	return f.use(ctx, name, false)
}

// Warm loads a model that nobody has asked for yet, if there is room for it now.
func (f *Fleet[E]) Warm(ctx context.Context, name string) error {
	_, done, err := f.use(ctx, name, true)
	if err == nil {
		done()
	}
	if errors.Is(err, errCrowded) {
		return nil
	}
	return err
}

func (f *Fleet[E]) use(ctx context.Context, name string, meek bool) (e E, done func(), err error) {
	if !slices.Contains(f.source.Names(), name) {
		return e, nil, ErrUnknown
	}
	f.check(name)
	ticket, answer, err := f.want(name, meek)
	if err != nil {
		return e, nil, err
	}
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = context.Cause(ctx)
		if f.cancel(ticket, answer) {
			f.done(name)
		}
	}
	if err != nil {
		return e, nil, err
	}
	var none E
	if e = f.Engine(name); e == none {
		return e, nil, ErrClosed
	}
	return e, sync.OnceFunc(func() { f.done(name) }), nil
}

// check has a model that cannot go on loaded again.
func (f *Fleet[E]) check(name string) {
	var none E
	e := f.Engine(name)
	if e == none {
		return
	}
	err := e.Health()
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[name] == e && !f.closed {
		f.log.Error().Err(err).Str("model", name).Msg("the model is loaded again")
		f.carry(f.state.Sick(now(), name))
	}
}

// Changed says that a model's file is another one now, or gone. Requests that use it go on; the next one waits for the
// new one.
func (f *Fleet[E]) Changed(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.carry(f.state.Changed(now(), name))
	}
}

func (f *Fleet[E]) want(name string, meek bool) (swap.Ticket, chan error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, nil, ErrClosed
	}
	f.last++
	answer := make(chan error, 1)
	f.asked[f.last] = answer
	effects, err := f.state.Want(now(), f.last, name, meek)
	if err != nil {
		delete(f.asked, f.last)
		return 0, nil, err
	}
	ticket := f.last
	f.carry(effects)
	return ticket, answer, nil
}

// cancel takes a request back, and says whether it was admitted meanwhile.
func (f *Fleet[E]) cancel(t swap.Ticket, answer chan error) (admitted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case err := <-answer:
		return err == nil
	default:
	}
	delete(f.asked, t)
	if !f.closed {
		f.carry(f.state.Cancel(now(), t))
	}
	return false
}

func (f *Fleet[E]) done(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	effects := f.state.Done(now(), name)
	if !f.closed {
		f.carry(effects)
	}
}

// answer tells who waits.
func (f *Fleet[E]) answer(t swap.Ticket, err error) {
	if answer, ok := f.asked[t]; ok {
		delete(f.asked, t)
		answer <- err
	}
}

// carry does what was decided, and sets the clock for what is to be decided next.
func (f *Fleet[E]) carry(effects []swap.Effect) {
	for _, e := range effects {
		switch e.Action {
		case swap.Measure:
			f.work.Go(func() { f.measure(e.Model) })
		case swap.Load:
			l := &load{}
			f.loads[e.Model] = l
			f.work.Go(func() { f.load(e.Model, e.Room, l) })
		case swap.Unload:
			engine := f.running[e.Model]
			delete(f.running, e.Model)
			f.work.Go(func() { f.unload(e.Model, engine) })
		case swap.Admit:
			f.answer(e.Ticket, nil)
		case swap.Crowded:
			f.answer(e.Ticket, errCrowded)
		}
	}
	if f.timer != nil {
		f.timer.Stop()
	}
	at := now()
	if next, ok := f.state.Next(at); ok {
		f.timer = after(next.Sub(at), f.tick)
	}
}

func (f *Fleet[E]) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.carry(f.state.Tick(now()))
	}
}

func (f *Fleet[E]) measure(name string) {
	var need swap.Room
	err := guarded(func() (err error) {
		f.one.Lock()
		defer f.one.Unlock()
		need, err = f.source.Measure(f.base, name)
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
	case err != nil:
		f.failed(name, err)
	default:
		f.carry(f.state.Measured(now(), name, need))
	}
}

func (f *Fleet[E]) load(name string, room swap.Room, l *load) {
	var engine E
	began := now()
	err := guarded(func() (err error) {
		engine, err = f.source.Load(f.base, name, room, func(done, total int64) {
			l.done.Store(done)
			l.total.Store(total)
		})
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.loads, name)
	if err == nil { // Close finds it, if it came too late for others
		f.running[name] = engine
	}
	switch {
	case f.closed:
	case err != nil:
		f.failed(name, err)
	default:
		f.log.Info().Str("model", name).Dur("ms", now().Sub(began)).Msg("loaded")
		f.carry(f.state.Loaded(now(), name))
	}
}

func (f *Fleet[E]) unload(name string, engine E) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := guarded(func() error { return engine.Close(ctx) })
	f.log.Info().Err(err).Str("model", name).Msg("unloaded")
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.carry(f.state.Unloaded(now(), name))
	}
}

// failed tells those who asked for a model why there is none. Others do not notice.
func (f *Fleet[E]) failed(name string, err error) {
	f.log.Error().Err(err).Str("model", name).Msg("the model cannot be loaded")
	effects := f.state.Failed(now(), name)
	for _, e := range effects {
		if e.Action == swap.Refuse {
			f.answer(e.Ticket, fmt.Errorf("the model %q cannot be loaded: %w", name, err))
		}
	}
	f.carry(effects)
}

// guarded turns a panic into an error: one model's must not end the others.
func guarded(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work()
}

// Close unloads all: who waits is refused, what is being loaded is given up, what is open may finish until ctx ends.
func (f *Fleet[E]) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	for t := range f.asked {
		f.answer(t, ErrClosed)
	}
	f.mu.Unlock()
	f.cut()
	f.work.Wait()
	f.mu.Lock()
	running := f.running
	f.running = map[string]E{}
	f.mu.Unlock()
	errs, all := make(chan error, len(running)), sync.WaitGroup{}
	for _, engine := range running {
		all.Go(func() { errs <- engine.Close(ctx) })
	}
	all.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
