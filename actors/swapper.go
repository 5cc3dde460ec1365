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
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/swap"
)

// Source is what a Swapper gets models from. Its methods are called by several goroutines.
type Source interface {
	// Names lists the models that can be asked for, the first one first. They may change.
	Names() []string
	// House is the house in which models run: another one, if the last cannot serve any more.
	House() (*House, error)
	// Model opens a model's file and returns the model's configuration. The caller closes the file.
	Model(name string) (Model, error)
	// Enter loads that model into a house, after edit has limited what it may take.
	Enter(ctx context.Context, h *House, name string, edit func(*Model)) (*Engine, error)
}

// Swapper loads models into a house when they are asked for, within one budget; others are unloaded to make room.
// Package swap decides which. A model that cannot serve any more is unloaded, and loaded again for the next request.
type Swapper = swapper[*Engine]

// NewSwapper returns a swapper that has loaded nothing yet.
func NewSwapper(source Source, limits swap.Limits, log zerolog.Logger) *Swapper {
	return newSwapper(&housed{source, limits.Room}, limits, log)
}

// Errors of requests for a model.
var (
	ErrUnknown = errors.New("no such model")
	ErrFull    = swap.ErrFull

	errCrowded = errors.New("there is no room")
)

// runs is a model that is loaded: an Engine, or a fake in tests.
type runs interface {
	comparable
	Health() error                   // why it cannot go on; nil: it can
	Leave(ctx context.Context) error // lets open requests finish until ctx ends
}

// lends is what carries out a swapper's decisions. Its methods are called by several goroutines.
type lends[E runs] interface {
	Names() []string
	// Measure returns what a model would take, without loading it: never more than the whole budget.
	Measure(ctx context.Context, name string) (swap.Room, error)
	// Load loads a model within room, which is what was measured. It reports from time to time how many bytes have
	// come, and how many there are.
	Load(ctx context.Context, name string, room swap.Room, progress func(done, total int64)) (E, error)
}

// housed carries out a swapper's decisions in a house.
type housed struct {
	Source
	room swap.Room // the budget of all models
}

// Measure plans a model for an empty machine. So a file that cannot run is refused before any other model is unloaded
// for it.
func (s *housed) Measure(_ context.Context, name string) (room swap.Room, err error) {
	h, err := s.House()
	if err != nil {
		return room, err
	}
	m, err := s.Model(name)
	if err != nil {
		return room, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	m.Weights = bounded(&m, h.Traits(), s.room.Host)
	p, err := PlanFor(&m, h.device)
	if err != nil {
		return room, err
	}
	return s.need(&m, p), nil
}

// need is what a planned model takes of the budget, in bytes.
func (s *housed) need(m *Model, p *Plan) (r swap.Room) {
	switch {
	case p.Apart:
		r = swap.Room{Host: p.Model.Host().Weights + p.Slabs}
		for i, own := range ownOf(&p.Memory, p.Traits)[1:] {
			takes := p.Model.Takes[i+1].Weights
			if m.VRAM == 0 && own != nil { // without a budget of its own the model needs all its memory there
				takes += own.KV + own.Scratch
			}
			r.Devices = append(r.Devices, takes)
		}
	case !m.NoRepack:
		r.Host = p.Model.Host().Weights + p.Slabs
	}
	r.Host += p.Model.Host().Spilled + p.Besides.Weights
	r.Host += m.remembered()  // bounded leaves as much for rows,
	if m.Kept.Folder != nil { // and for files
		r.Host += place.Files(m.Kept.bytes()) - p.Model.Files()
	}
	if p.Draft != nil {
		also := s.need(&Model{NoRepack: m.NoRepack}, p.Draft)
		if r.Host += also.Host; also.Host > 0 && !p.Apart { // what a plan within this room takes for it (fitDrafts)
			r.Host += p.Draft.Info.WeightBytes - p.Draft.Model.Host().Weights
		}
		for i := range also.Devices {
			r.Devices[i] += also.Devices[i]
		}
	}
	return r.Within(s.room)
}

// bounded is the budget for a model's weights, in bytes, that leaves it within room together with its KVHost, with what
// blocks in files take, and with the rows that a tower or an encoder remembers; 0: its weights are not limited.
func bounded(m *Model, t backend.Traits, room int64) int64 {
	if m.Weights > 0 || t.Shares && t.Memory == backend.HostMemory && !m.NoRepack {
		return max(room-m.KVHost-place.Files(m.Kept.bytes())-m.remembered(), 1)
	}
	return 0
}

// remembered is the most bytes of rows that a tower or an encoder remembers, as far as the files say: whether a tower
// that comes along can be used is only known once its model is planned.
func (m *Model) remembered() int64 {
	if m.Tower != nil || m.File != nil && arch.Hears(&m.File.Meta) {
		return mostSeen
	}
	return 0
}

// Load loads a model into the house.
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

// patience is how long a model that is unloaded may take to close. It has no open requests that would have to finish.
const patience = 10 * time.Second

// swapper loads and unloads models as swap.State decides. Its methods may be called from any goroutine.
type swapper[E runs] struct {
	source lends[E]
	log    zerolog.Logger
	base   context.Context // the context of all measuring and loading
	cut    context.CancelFunc
	work   sync.WaitGroup // goroutines that measure, load and unload
	one    sync.Mutex     // held to measure, which takes memory of its own

	mu      sync.Mutex
	state   *swap.State
	closed  bool
	running map[string]E
	loads   map[string]*load
	faults  map[string]error           // why models could not be loaded the last time
	asked   map[swap.Ticket]chan error // by request that waits; each channel has room for the answer
	last    swap.Ticket
	timer   *time.Timer
}

// load is the progress of a model that is being loaded, in bytes.
type load struct{ done, total atomic.Int64 }

func newSwapper[E runs](source lends[E], limits swap.Limits, log zerolog.Logger) *swapper[E] {
	s := &swapper[E]{
		source: source, log: log, state: swap.New(limits), running: map[string]E{}, loads: map[string]*load{},
		faults: map[string]error{}, asked: map[swap.Ticket]chan error{},
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

// ModelStatus says whether a model is loaded, and how many requests use it.
type ModelStatus struct {
	Phase          swap.Phase
	Using, Waiting int   // requests
	Done, Total    int64 // bytes of weights, while it is loaded
	Fault          error // why it could not be loaded the last time; nil: it could be, or was not asked for
}

// Status returns the status of a model.
func (s *swapper[E]) Status(name string) (is ModelStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is.Phase, is.Fault = s.state.Phase(name), s.faults[name]
	is.Using, is.Waiting = s.state.Users(name)
	if l := s.loads[name]; l != nil {
		is.Done, is.Total = l.done.Load(), l.total.Load()
	}
	return is
}

// Use waits until a model is loaded, and loads it if need be. The model stays until done is called, which may be
// repeated.
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

// check unloads a model that cannot serve any more, so that it is loaded again.
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

// Changed says that a model's file was replaced or removed. Requests that use the model go on; the next one waits for
// the new file.
func (s *swapper[E]) Changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.faults, name)
	if !s.closed {
		s.carry(s.state.Changed(now(), name))
	}
}

// Unload unloads a model once no request uses it or waits for it. If it is asked for again meanwhile, it stays.
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

// cancel takes a waiting request back, and says whether it was admitted meanwhile.
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

// answer ends the wait of a request.
func (s *swapper[E]) answer(t swap.Ticket, err error) {
	if answer, ok := s.asked[t]; ok {
		delete(s.asked, t)
		answer <- err
	}
}

// carry carries out decisions, and sets the timer for the next one that depends on time.
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
	if err == nil { // Close finds it here, if it was loaded too late for requests
		s.running[name] = engine
		delete(s.faults, name)
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

// failed refuses the requests that wait for a model that cannot be loaded. Others go on.
func (s *swapper[E]) failed(name string, err error) {
	s.log.Error().Err(err).Str("model", name).Msg("the model cannot be loaded")
	s.faults[name] = err
	effects := s.state.Failed(now(), name)
	for _, e := range effects {
		if e.Action == swap.Refuse {
			s.answer(e.Ticket, fmt.Errorf("the model %q cannot be loaded: %w", name, err))
		}
	}
	s.carry(effects)
}

// Close unloads all models: waiting requests are refused, loading is given up, open requests may finish until ctx
// ends.
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
