package actors

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
)

// tree is what the actors of one engine share: addresses, logging, accounts. Its fields are set before the first
// actor starts; what changes later is atomic or locked.
type tree struct {
	system *actor.ActorSystem
	log    zerolog.Logger
	turns  *turns

	engine, sessions, scheduler, kv, sampler *actor.PID
	device, uploader, packer, prefetcher     *actor.PID
	reader, pool                             *actor.PID

	dead       atomic.Uint64 // messages to actors that are gone
	unexpected atomic.Uint64 // messages that their receiver does not list

	mu    sync.Mutex
	loads map[string]*load // by actor id; a session's goes with it
}

func newTree(log zerolog.Logger, crowded bool) *tree {
	t := &tree{log: log, turns: newTurns(crowded), loads: make(map[string]*load)}
	t.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(zerolog.NewSlogHandler(log.Level(max(log.GetLevel(), zerolog.WarnLevel))))
		}),
		actor.WithDeadLetterRequestLogging(false),
		actor.WithDeadLetterThrottleInterval(time.Millisecond), // each burst costs a goroutine for so long
	)
	t.system.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok {
			t.deadLetter(d)
		}
	})
	pid := func(id string) *actor.PID { return t.system.NewLocalPID(id) }
	t.engine, t.sessions = pid("engine"), pid("engine/sessions")
	t.scheduler, t.kv, t.sampler = pid("engine/scheduler"), pid("engine/kv"), pid("engine/sampler")
	t.reader, t.pool, t.device = pid("engine/reader"), pid("engine/pool"), pid("engine/device")
	t.uploader, t.packer = pid("engine/device/uploader"), pid("engine/device/packer")
	t.prefetcher = pid("engine/device/prefetcher")
	return t
}

func (t *tree) deadLetter(d *actor.DeadLetterEvent) {
	if r, ok := d.Message.(refusable); ok { // its sender waits for an answer
		r.refused()
		return
	}
	switch d.Message.(type) {
	case late, actor.SystemMessage:
		return // its receiver may rightly be gone
	}
	t.dead.Add(1)
	id := "?"
	if d.PID != nil {
		id = d.PID.Id
	}
	t.log.Warn().Str("to", id).Str("message", fmt.Sprintf("%T", d.Message)).Msg("dead letter")
}

// late marks messages that may find their receiver gone: answers to a session that has ended, news for it.
type late interface{ late() }

func (t *tree) send(to *actor.PID, message any) { t.system.Root.Send(to, message) }

// props describes an actor: bounded mailbox of its kind, supervision of its children. produce is called for each
// incarnation, which counts from 0.
func (t *tree) props(kind, id string, strategy actor.SupervisorStrategy,
	produce func(incarnation int) actor.Actor) *actor.Props {
	l := new(load)
	t.mu.Lock()
	t.loads[id] = l
	t.mu.Unlock()
	incarnation := -1
	options := []actor.PropsOption{
		actor.WithMailbox(func() actor.Mailbox { return newMailbox(capacity(kind), l) }),
	}
	switch kind {
	case "scheduler", "kv", "device", "sampler":
		options = append(options, actor.WithDispatcher(&t.turns.steps))
	case "session":
		options = append(options, actor.WithDispatcher(&t.turns.sessions))
	}
	if strategy != nil {
		options = append(options, actor.WithSupervisor(strategy))
	}
	return actor.PropsFromProducer(func() actor.Actor {
		incarnation++
		return produce(incarnation)
	}, options...)
}

func (t *tree) load(id string) *load {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loads[id]
}

func (t *tree) forget(id string) {
	t.mu.Lock()
	delete(t.loads, id)
	t.mu.Unlock()
}

// crash makes its receiver panic, for tests of supervision.
type crash struct{}

func (*crash) late() {}

// lifecycle handles what every actor may receive. Any other message is a defect: it is counted, and tests fail.
func (t *tree) lifecycle(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting, *actor.Terminated:
	case *crash:
		panic("crashed on demand")
	default:
		t.unexpected.Add(1)
		t.log.Error().Str("actor", c.Self().Id).Str("message", fmt.Sprintf("%T", m)).Msg("message that the actor does not list")
	}
}
