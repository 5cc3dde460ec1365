package run

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/trace"
)

// System is a tree of actors: their addresses, their log and the accounts of what they did.
type System struct {
	log   zerolog.Logger
	proto *actor.ActorSystem
	spans *trace.Ring

	dead       atomic.Uint64 // messages to actors that are gone
	unexpected atomic.Uint64 // messages that their receiver does not list

	mu    sync.Mutex
	loads map[string]*load // by actor id, until Forget
}

// spansKept is how many spans are kept: some seconds of a small model's tokens, in half a megabyte.
const spansKept = 8192

// NewSystem returns a system without actors.
func NewSystem(log zerolog.Logger) *System {
	s := &System{log: log, spans: trace.New(spansKept, now()), loads: make(map[string]*load)}
	s.proto = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(zerolog.NewSlogHandler(log.Level(max(log.GetLevel(), zerolog.WarnLevel))))
		}),
		actor.WithDeadLetterRequestLogging(false),
		actor.WithDeadLetterThrottleInterval(time.Millisecond), // each burst costs a goroutine for so long
	)
	s.proto.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			s.deadLetter(d)
		}
	})
	return s
}

// Spans returns the spans: one for each message that an actor handled, and those of threads that work beside actors.
func (s *System) Spans() *trace.Ring { return s.spans }

// Address returns the address of the actor with this path, which need not exist yet. Without a system there is none.
func (s *System) Address(path string) *actor.PID {
	if s == nil {
		return nil
	}
	return s.proto.NewLocalPID(path)
}

// Spec describes an actor that is to be started.
type Spec struct {
	Name     string                            // within its parent
	Capacity int                               // messages that its mailbox holds
	Room     *atomic.Int64                     // likewise, where that may grow; nil: Capacity
	Line     *Line                             // on which it takes turns; nil: a goroutine whenever it has messages
	Children actor.SupervisorStrategy          // supervises its children; nil: it has none, or restarts none
	Produce  func(incarnation int) actor.Actor // called for each incarnation, which counts from 0
}

// Start starts an actor without a parent.
func (s *System) Start(spec Spec) error {
	return s.spawn(s.proto.Root, spec.Name, spec)
}

// Spawn starts a child of c's actor.
func (s *System) Spawn(c actor.Context, spec Spec) error {
	return s.spawn(c, c.Self().Id+"/"+spec.Name, spec)
}

func (s *System) spawn(parent actor.SpawnerContext, id string, spec Spec) error {
	if _, err := parent.SpawnNamed(s.props(id, &spec), spec.Name); err != nil {
		return fmt.Errorf("starting actor %s: %w", id, err)
	}
	return nil
}

func (s *System) props(id string, spec *Spec) *actor.Props {
	l := &load{track: s.spans.Track(id)}
	s.mu.Lock()
	s.loads[id] = l
	s.mu.Unlock()
	room, produce, incarnation := spec.Room, spec.Produce, -1
	if room == nil {
		room = roomFor(spec.Capacity)
	}
	options := []actor.PropsOption{
		actor.WithMailbox(func() actor.Mailbox { return newMailbox(room, l) }),
	}
	if spec.Line != nil {
		options = append(options, actor.WithDispatcher(spec.Line))
	}
	if spec.Children != nil {
		options = append(options, actor.WithSupervisor(spec.Children))
	}
	return actor.PropsFromProducer(func() actor.Actor {
		incarnation++
		return produce(incarnation)
	}, options...)
}

// Stop ends an actor and waits until it and its children are gone.
func (s *System) Stop(who *actor.PID) error { return s.proto.Root.StopFuture(who).Wait() }

// Shutdown ends what protoactor runs beside the actors. All actors must have been stopped before.
func (s *System) Shutdown() { s.proto.Shutdown() }

func (s *System) deadLetter(d *actor.DeadLetterEvent) {
	if r, ok := d.Message.(Refusable); ok { // its sender waits for an answer
		r.Refused()
		return
	}
	switch d.Message.(type) {
	case Late, actor.SystemMessage:
		return // its receiver may rightly be gone
	}
	s.dead.Add(1)
	id := "?"
	if d.PID != nil {
		id = d.PID.Id
	}
	s.log.Warn().Str("to", id).Str("message", fmt.Sprintf("%T", d.Message)).Msg("dead letter")
}

// crash makes its receiver panic.
type crash struct{}

func (*crash) Late() {}

// Crash makes an actor panic, for tests of supervision.
func (s *System) Crash(who *actor.PID) { s.proto.Root.Send(who, &crash{}) }

// Slow makes an actor sleep so long before each message, for tests of what a delay is attributed to.
func (s *System) Slow(who *actor.PID, by time.Duration) { s.load(who.Id).slow.Store(int64(by)) }

// Lifecycle handles messages that an actor does not list itself: those of protoactor's life cycle, and crash. Any
// other message is a defect: it is counted, and tests fail.
func (s *System) Lifecycle(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting, *actor.Terminated:
	case *crash:
		panic("crashed on demand")
	default:
		s.unexpected.Add(1)
		s.log.Error().Str("actor", c.Self().Id).Str("message", fmt.Sprintf("%T", m)).
			Msg("message that the actor does not list")
	}
}

// Faults returns how many messages went to actors that were gone, without being marked Late, and how many their
// receivers do not list.
func (s *System) Faults() (deadLetters, unexpected uint64) { return s.dead.Load(), s.unexpected.Load() }

func (s *System) load(id string) *load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads[id]
}

// Forget drops the account of an actor that is gone.
func (s *System) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loads, id)
}

// ForgetTree drops the accounts of an actor that is gone and of all below it.
func (s *System) ForgetTree(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.loads, func(at string, _ *load) bool { return at == id || strings.HasPrefix(at, id+"/") })
}

// roomFor is a mailbox's room that stays as it is.
func roomFor(messages int) *atomic.Int64 {
	n := new(atomic.Int64)
	n.Store(int64(messages))
	return n
}

// Status is what one actor has done.
type Status struct {
	ID               string
	Handled, Refused uint64
	Restarts         uint64
	Depth, Peak      int64         // messages waiting now, and at most
	Busy, Waited     time.Duration // time spent handling messages; time that messages waited before, summed
}

// Status returns what each actor has done, by id.
func (s *System) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Status, 0, len(s.loads))
	for id, l := range s.loads {
		did := l.track.Total()
		out = append(out, Status{
			ID: id, Handled: did.Count, Refused: l.refused.Load(), Restarts: l.restarts.Load(),
			Depth: l.depth.Load(), Peak: l.peak.Load(), Busy: did.Work, Waited: did.Wait,
		})
	}
	slices.SortFunc(out, func(a, b Status) int { return strings.Compare(a.ID, b.ID) })
	return out
}
