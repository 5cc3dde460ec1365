package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/swap"
)

// Source is where models come from. Its methods are called by several goroutines.
type Source interface {
	// Names lists the models that can be asked for, the first one first. They may change.
	Names() []string
	// House is where models run: another one, if the last cannot serve any more.
	House() (*House, error)
	// Model opens a model's file and says how it is run there. The file is the caller's.
	Model(name string) (Model, error)
	// Enter has that model enter a house, after edit has bounded what it may take.
	Enter(ctx context.Context, h *House, name string, edit func(*Model)) (*Engine, error)
}

// Swapper loads models into a house when they are asked for, within one budget; others leave for them. What is loaded
// and who leaves is decided by package swap. A model that cannot go on leaves, and is loaded again for the next who
// asks.
type Swapper = swapper[*Engine]

// NewSwapper makes one of which nothing is loaded.
func NewSwapper(source Source, limits swap.Limits, log zerolog.Logger) *Swapper {
	return newSwapper(&housed{source, limits.Room}, limits, log)
}

// Errors of those who ask for a model.
var (
	ErrUnknown = errors.New("no such model")
	ErrFull    = swap.ErrFull

	errCrowded = errors.New("there is no room")
)

// runs is a model that runs.
type runs interface {
	comparable
	Health() error                   // why it cannot go on; nil: it can
	Leave(ctx context.Context) error // lets what is open finish until ctx ends
}

// lends is what a swapper has carried out. Its methods are called by several goroutines.
type lends[E runs] interface {
	Names() []string
	// Measure finds out what a model takes, without loading it: never more than there is at all.
	Measure(ctx context.Context, name string) (swap.Room, error)
	// Load runs a model, within room: what was measured. What is there of it, of how much, is told from time to time.
	Load(ctx context.Context, name string, room swap.Room, progress func(done, total int64)) (E, error)
}

// housed has models enter a house.
type housed struct {
	Source
	room swap.Room // of all models
}

// Measure plans a model for an empty machine. A file that cannot run is found out before anybody left for it.
func (s *housed) Measure(_ context.Context, name string) (room swap.Room, err error) {
	h, err := s.House()
	if err != nil {
		return room, err
	}
	m, err := s.Model(name)
	if err != nil {
		return room, err
	}
	defer func() { err = errors.Join(err, m.File.Close()) }()
	m.Weights = bounded(&m, h.Traits(), s.room.Host)
	p, err := PlanFor(&m, h.device)
	if err != nil {
		return room, err
	}
	return s.need(&m, p), nil
}

// need is what a model takes of the budget.
func (s *housed) need(m *Model, p *Plan) (r swap.Room) {
	switch {
	case p.Apart:
		r = swap.Room{Host: p.Model.Host().Weights + p.Slabs}
		for i, own := range ownOf(&p.Memory, p.Traits)[1:] {
			takes := p.Model.Takes[i+1].Weights
			if m.VRAM == 0 && own != nil { // of what is free, all has to come
				takes += own.KV + own.Scratch
			}
			r.Devices = append(r.Devices, takes)
		}
	case !m.NoRepack:
		r.Host = p.Model.Host().Weights + p.Slabs
	}
	r.Host += p.Model.Host().Spilled
	return r.Within(s.room)
}

// bounded is the budget for weights of a model for which there is so much room, with blocks that its caches have no
// room for; 0: it has none.
func bounded(m *Model, t backend.Traits, room int64) int64 {
	if m.Weights > 0 || t.Shares && t.Memory == backend.HostMemory && !m.NoRepack {
		return max(room-m.KVHost, 1)
	}
	return 0
}

// Load has a model enter.
func (s *housed) Load(ctx context.Context, name string, room swap.Room, progress func(done, total int64)) (
	*Engine, error) {
	h, err := s.House()
	if err != nil {
		return nil, err
	}
	return s.Enter(ctx, h, name, func(m *Model) {
		m.Weights = bounded(m, h.Traits(), room.Host)
		if m.VRAM > 0 {
			m.VRAM = slices.Max(room.Devices)
		}
		told := m.Progress
		m.Progress = func(done, total int64) {
			if progress(done, total); told != nil {
				told(done, total)
			}
		}
	})
}

// patience is how long a model that leaves may take to close. Nobody uses it, so there is nothing to finish.
const patience = 10 * time.Second

// swapper is models that are loaded when they are asked for. Its methods may be called from any goroutine.
type swapper[E runs] struct {
	source lends[E]
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

func newSwapper[E runs](source lends[E], limits swap.Limits, log zerolog.Logger) *swapper[E] {
	s := &swapper[E]{
		source: source, log: log, state: swap.New(limits), running: map[string]E{}, loads: map[string]*load{},
		asked: map[swap.Ticket]chan error{},
	}
	s.base, s.cut = context.WithCancel(context.Background())
	return s
}

// Names lists the models that can be asked for, the first one first.
func (s *swapper[E]) Names() []string { return s.source.Names() }

// Engine is the model of that name, if it is loaded now; else the zero value.
func (s *swapper[E]) Engine(name string) (e E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name]
}

// ModelStatus is where a model is.
type ModelStatus struct {
	Phase          swap.Phase
	Using, Waiting int   // requests
	Done, Total    int64 // bytes of weights, while it is loaded
}

// Status says where a model is.
func (s *swapper[E]) Status(name string) (is ModelStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is.Phase = s.state.Phase(name)
	is.Using, is.Waiting = s.state.Users(name)
	if l := s.loads[name]; l != nil {
		is.Done, is.Total = l.done.Load(), l.total.Load()
	}
	return is
}

// Use waits until a model is loaded. It stays until done is called, which may be repeated.
func (s *swapper[E]) Use(ctx context.Context, name string) (e E, done func(), err error) {
	return s.use(ctx, name, false)
}

// Warm loads a model that nobody has asked for yet, if there is room for it now.
func (s *swapper[E]) Warm(ctx context.Context, name string) error {
	_, done, err := s.use(ctx, name, true)
	if err == nil {
		done()
	}
	if errors.Is(err, errCrowded) {
		return nil
	}
	return err
}

func (s *swapper[E]) use(ctx context.Context, name string, meek bool) (e E, done func(), err error) {
	if !slices.Contains(s.source.Names(), name) {
		return e, nil, ErrUnknown
	}
	s.check(name)
	ticket, answer, err := s.want(name, meek)
	if err != nil {
		return e, nil, err
	}
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = context.Cause(ctx)
		if s.cancel(ticket, answer) {
			s.done(name)
		}
	}
	if err != nil {
		return e, nil, err
	}
	var none E
	if e = s.Engine(name); e == none {
		return e, nil, ErrClosed
	}
	return e, sync.OnceFunc(func() { s.done(name) }), nil
}

// check has a model that cannot go on loaded again.
func (s *swapper[E]) check(name string) {
	var none E
	e := s.Engine(name)
	if e == none {
		return
	}
	err := e.Health()
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[name] == e && !s.closed {
		s.log.Error().Err(err).Str("model", name).Msg("the model is loaded again")
		s.carry(s.state.Sick(now(), name))
	}
}

// Changed says that a model's file is another one now, or gone. Requests that use it go on; the next one waits for the
// new one.
func (s *swapper[E]) Changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.carry(s.state.Changed(now(), name))
	}
}

// Unload has a model leave once no request uses it or waits for it. One that is asked for again meanwhile stays.
func (s *swapper[E]) Unload(name string) error {
	if !slices.Contains(s.source.Names(), name) {
		return ErrUnknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.carry(s.state.Dismiss(now(), name))
	}
	return nil
}

func (s *swapper[E]) want(name string, meek bool) (swap.Ticket, chan error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, nil, ErrClosed
	}
	s.last++
	answer := make(chan error, 1)
	s.asked[s.last] = answer
	effects, err := s.state.Want(now(), s.last, name, meek)
	if err != nil {
		delete(s.asked, s.last)
		return 0, nil, err
	}
	ticket := s.last
	s.carry(effects)
	return ticket, answer, nil
}

// cancel takes a request back, and says whether it was admitted meanwhile.
func (s *swapper[E]) cancel(t swap.Ticket, answer chan error) (admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case err := <-answer:
		return err == nil
	default:
	}
	delete(s.asked, t)
	if !s.closed {
		s.carry(s.state.Cancel(now(), t))
	}
	return false
}

func (s *swapper[E]) done(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	effects := s.state.Done(now(), name)
	if !s.closed {
		s.carry(effects)
	}
}

// answer tells who waits.
func (s *swapper[E]) answer(t swap.Ticket, err error) {
	if answer, ok := s.asked[t]; ok {
		delete(s.asked, t)
		answer <- err
	}
}

// carry does what was decided, and sets the clock for what is to be decided next.
func (s *swapper[E]) carry(effects []swap.Effect) {
	for _, e := range effects {
		switch e.Action {
		case swap.Measure:
			s.work.Go(func() { s.measure(e.Model) })
		case swap.Load:
			l := &load{}
			s.loads[e.Model] = l
			s.work.Go(func() { s.load(e.Model, e.Room, l) })
		case swap.Unload:
			engine := s.running[e.Model]
			delete(s.running, e.Model)
			s.work.Go(func() { s.unload(e.Model, engine) })
		case swap.Admit:
			s.answer(e.Ticket, nil)
		case swap.Crowded:
			s.answer(e.Ticket, errCrowded)
		}
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	at := now()
	if next, ok := s.state.Next(at); ok {
		s.timer = after(next.Sub(at), s.tick)
	}
}

func (s *swapper[E]) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.carry(s.state.Tick(now()))
	}
}

func (s *swapper[E]) measure(name string) {
	var need swap.Room
	err := guarded(func() (err error) {
		s.one.Lock()
		defer s.one.Unlock()
		need, err = s.source.Measure(s.base, name)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case err != nil:
		s.failed(name, err)
	default:
		s.carry(s.state.Measured(now(), name, need))
	}
}

func (s *swapper[E]) load(name string, room swap.Room, l *load) {
	var engine E
	began := now()
	err := guarded(func() (err error) {
		engine, err = s.source.Load(s.base, name, room, func(done, total int64) {
			l.done.Store(done)
			l.total.Store(total)
		})
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loads, name)
	if err == nil { // Close finds it, if it came too late for others
		s.running[name] = engine
	}
	switch {
	case s.closed:
	case err != nil:
		s.failed(name, err)
	default:
		s.log.Info().Str("model", name).Dur("ms", now().Sub(began)).Msg("loaded")
		s.carry(s.state.Loaded(now(), name))
	}
}

func (s *swapper[E]) unload(name string, engine E) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := guarded(func() error { return engine.Leave(ctx) })
	s.log.Info().Err(err).Str("model", name).Msg("unloaded")
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.carry(s.state.Unloaded(now(), name))
	}
}

// failed tells those who asked for a model why there is none. Others do not notice.
func (s *swapper[E]) failed(name string, err error) {
	s.log.Error().Err(err).Str("model", name).Msg("the model cannot be loaded")
	effects := s.state.Failed(now(), name)
	for _, e := range effects {
		if e.Action == swap.Refuse {
			s.answer(e.Ticket, fmt.Errorf("the model %q cannot be loaded: %w", name, err))
		}
	}
	s.carry(effects)
}

// Close unloads all: who waits is refused, what is being loaded is given up, what is open may finish until ctx ends.
func (s *swapper[E]) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	for t := range s.asked {
		s.answer(t, ErrClosed)
	}
	s.mu.Unlock()
	s.cut()
	s.work.Wait()
	s.mu.Lock()
	running := s.running
	s.running = map[string]E{}
	s.mu.Unlock()
	errs, all := make(chan error, len(running)), sync.WaitGroup{}
	for _, engine := range running {
		all.Go(func() { errs <- engine.Leave(ctx) })
	}
	all.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
