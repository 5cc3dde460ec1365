package swap

import (
	"errors"
	"slices"
	"time"
)

// Room is memory for models, by where it is.
type Room struct {
	Host    int64   // of the program
	Devices []int64 // of each device that has its own; what is left out is 0
}

// On is what there is on a device.
func (r Room) On(device int) int64 {
	if device < len(r.Devices) {
		return r.Devices[device]
	}
	return 0
}

// each applies f to two rooms: to the host's memory, and to that of each device.
func (r Room) each(o Room, f func(a, b int64) int64) Room {
	sum := Room{Host: f(r.Host, o.Host)}
	for i := range max(len(r.Devices), len(o.Devices)) {
		sum.Devices = append(sum.Devices, f(r.On(i), o.On(i)))
	}
	return sum
}

func (r Room) plus(o Room) Room  { return r.each(o, func(a, b int64) int64 { return a + b }) }
func (r Room) minus(o Room) Room { return r.each(o, func(a, b int64) int64 { return a - b }) }

// Within is the smaller of two rooms, for the host and for each device.
func (r Room) Within(o Room) Room { return r.each(o, func(a, b int64) int64 { return min(a, b) }) }

func (r Room) holds(o Room) bool {
	left := r.minus(o)
	return left.Host >= 0 && !slices.ContainsFunc(left.Devices, func(n int64) bool { return n < 0 })
}

// Limits say what there is, and for how long.
type Limits struct {
	Room      Room          // for all models together
	KeepAlive time.Duration // a model that nobody asked for in so long is unloaded; 0: it stays until its room is needed
	Queue     int           // requests that may wait for models
}

// leastStay is the least time that a loaded model takes requests while others wait for its room.
const leastStay = time.Second

// Phase is where a model is between its file and a running engine.
type Phase uint8

const (
	Absent    Phase = iota
	Measuring       // what it takes is being found out
	Waiting         // for room, or for another one that is being loaded
	Loading
	Ready
	Leaving
)

var phaseNames = [...]string{"unloaded", "measuring", "waiting", "loading", "loaded", "unloading"}

func (p Phase) String() string { return phaseNames[p] }

// Ticket is a request that asked for a model.
type Ticket uint64

// Action is what is to be done.
type Action uint8

const (
	Measure Action = iota + 1 // find out what Model takes: Measured or Failed follows
	Load                      // Model, in Room, which is what was measured: Loaded or Failed follows
	Unload                    // Model: Unloaded follows
	Admit                     // Ticket uses Model from now on, until Done
	Refuse                    // Ticket gets no model: it could not be measured or loaded
	Crowded                   // Ticket gets no model: there is no room, and it was not to wait for any
)

// Effect is one thing to be done.
type Effect struct {
	Action Action
	Model  string
	Ticket Ticket
	Room   Room
}

// ErrFull refuses a request.
var ErrFull = errors.New("as many requests wait for models as may: try again later")

// State is what is known of all models. One goroutine uses it at a time; times never go back.
type State struct {
	limits Limits
	models map[string]*model
	queue  []waiter // in the order in which they came
}

type model struct {
	name    string
	phase   Phase
	need    Room
	users   int
	used    time.Time     // when somebody last came or went
	since   time.Time     // when its phase began
	stay    time.Duration // how long it takes requests once loaded, while others wait for its room
	sick    bool          // it cannot, or is not to, go on: nobody is admitted, and it leaves with its last user
	idle    bool          // it leaves when nobody uses it, unless somebody asks for it again
	changed bool          // its file became another one since it began to be measured
	closing bool          // others have waited long enough for its room: nobody is admitted
}

type waiter struct {
	ticket Ticket
	model  *model
	meek   bool // no model leaves for it, and it does not wait for room
}

// New makes a state in which no model is loaded.
func New(l Limits) *State { return &State{limits: l, models: map[string]*model{}} }

// Want records that a request asks for a model, known or not. A meek request makes no other model leave, and gets
// Crowded instead of waiting for room.
func (s *State) Want(now time.Time, t Ticket, name string, meek bool) ([]Effect, error) {
	m := s.models[name]
	if m == nil {
		m = &model{name: name}
		s.models[name] = m
	}
	if !m.open() && len(s.queue) >= s.limits.Queue {
		return nil, ErrFull
	}
	m.used, m.idle = now, false
	s.queue = append(s.queue, waiter{t, m, meek})
	return s.decide(now), nil
}

// Cancel takes back a request that waits.
func (s *State) Cancel(now time.Time, t Ticket) []Effect {
	s.queue = slices.DeleteFunc(s.queue, func(w waiter) bool { return w.ticket == t })
	return s.decide(now)
}

// Done ends a request that was admitted.
func (s *State) Done(now time.Time, name string) []Effect {
	m := s.models[name]
	m.users--
	m.used = now
	return s.decide(now)
}

// Measured says what a model takes.
func (s *State) Measured(now time.Time, name string, need Room) []Effect {
	m := s.models[name]
	m.need = need
	m.turn(Waiting, now)
	return s.decide(now)
}

// Loaded says that a model runs.
func (s *State) Loaded(now time.Time, name string) []Effect {
	m := s.models[name]
	m.stay = max(now.Sub(m.since), leastStay)
	m.used, m.sick, m.changed = now, m.changed, false
	m.turn(Ready, now)
	return s.decide(now)
}

// Failed says that a model could not be measured or loaded: who waits for it is refused.
func (s *State) Failed(now time.Time, name string) (effects []Effect) {
	m := s.models[name]
	m.changed = false
	m.turn(Absent, now)
	s.queue = slices.DeleteFunc(s.queue, func(w waiter) bool {
		if w.model == m {
			effects = append(effects, Effect{Action: Refuse, Model: name, Ticket: w.ticket})
		}
		return w.model == m
	})
	return append(effects, s.decide(now)...)
}

// Unloaded says that a model has left.
func (s *State) Unloaded(now time.Time, name string) []Effect {
	s.models[name].turn(Absent, now)
	return s.decide(now)
}

// Sick says that a loaded model cannot go on: it is loaded again when somebody asks for it.
func (s *State) Sick(now time.Time, name string) []Effect {
	if m := s.models[name]; m != nil && m.phase == Ready {
		m.sick = true
	}
	return s.decide(now)
}

// Dismiss has a model leave once nobody uses it or waits for it.
func (s *State) Dismiss(now time.Time, name string) []Effect {
	if m := s.models[name]; m != nil && m.phase != Absent && m.phase != Leaving {
		m.idle = true
	}
	return s.decide(now)
}

// Changed says that a model's file is another one now, or gone: nobody is admitted to what was loaded of the old one.
func (s *State) Changed(now time.Time, name string) []Effect {
	if m := s.models[name]; m != nil {
		switch m.phase {
		case Ready:
			m.sick = true
		case Measuring, Waiting, Loading:
			m.changed = true
		}
	}
	return s.decide(now)
}

// Tick decides again, because time has passed: see Next.
func (s *State) Tick(now time.Time) []Effect { return s.decide(now) }

// Phase is where a model is.
func (s *State) Phase(name string) Phase {
	if m := s.models[name]; m != nil {
		return m.phase
	}
	return Absent
}

// Users is how many requests use a model, or wait for it.
func (s *State) Users(name string) (using, waiting int) {
	m := s.models[name]
	if m == nil {
		return 0, 0
	}
	for _, w := range s.queue {
		if w.model == m {
			waiting++
		}
	}
	return m.users, waiting
}

// Used is what models take that are loaded, on their way or leaving.
func (s *State) Used() (sum Room) {
	for _, m := range s.models {
		if m.phase >= Loading {
			sum = sum.plus(m.need)
		}
	}
	return sum
}

func (m *model) turn(p Phase, now time.Time) { m.phase, m.since = p, now }

// open says that requests are admitted.
func (m *model) open() bool { return m.phase == Ready && !m.sick && !m.closing }
